"""Reads a request's whole body, within its limits of size and time. It does not look into it."""

import asyncio
from typing import Final

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.web_exceptions import HTTPRequestEntityTooLarge

from gateway.errors import BodyBroken, BodyTooLarge, BodyTooSlow

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


async def read_body(request: web.BaseRequest, seconds: float) -> bytes:
    """The body.

    Raises:
        BodyTooLarge: over the limit that the request was made with.
        BodyTooSlow: it did not arrive in time.
        BodyBroken: what arrived is not valid HTTP.
    """
    try:
        if request.content.is_eof():  # nearly always: it came with the headers, and needs no alarm
            body = request.content.read_nowait()
            if len(body) > request.client_max_size:
                raise BodyTooLarge(f"{len(body)} bytes")
            return body
        async with asyncio.timeout(seconds):
            if hdrs.EXPECT in request.headers:
                await _ask_for_it(request)
            return await request.read()
    except HTTPRequestEntityTooLarge as error:
        raise BodyTooLarge(error.text or "") from None
    except TimeoutError:
        raise BodyTooSlow(f"more than {seconds:g} s") from None
    except web.RequestPayloadError as error:
        raise BodyBroken(type(error.__cause__ or error).__name__) from None


async def _ask_for_it(request: web.BaseRequest) -> None:
    """Tell a client that waits for a word before it sends the body that it may (RFC 9110, 10.1.1).

    curl waits so with a megabyte or more, some clients with any body, and not all of them give up waiting.
    """
    if request.version < HttpVersion11 or request.headers[hdrs.EXPECT].lower() != "100-continue":
        return
    if (request.content_length or 0) > request.client_max_size:
        raise BodyTooLarge(f"{request.content_length} bytes announced")
    await request.writer.write(_CONTINUE)
    request.writer.output_size = 0  # the response has not begun
