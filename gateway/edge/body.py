"""Reads a request's whole body, within its limits of size and time. It does not look into it."""

import asyncio

from aiohttp import web
from aiohttp.web_exceptions import HTTPRequestEntityTooLarge

from gateway.errors import BodyBroken, BodyTooLarge, BodyTooSlow


async def read_body(request: web.BaseRequest, seconds: float) -> bytes:
    """The body.

    Raises:
        BodyTooLarge: over the limit that the request was made with.
        BodyTooSlow: it did not arrive in time.
        BodyBroken: what arrived is no HTTP.
    """
    try:
        if request.content.is_eof():  # nearly always: it came with the headers, and needs no alarm
            return await request.read()
        async with asyncio.timeout(seconds):
            return await request.read()
    except HTTPRequestEntityTooLarge as error:
        raise BodyTooLarge(error.text or "") from None
    except TimeoutError:
        raise BodyTooSlow(f"more than {seconds:g} s") from None
    except web.RequestPayloadError as error:
        raise BodyBroken(type(error.__cause__ or error).__name__) from None
