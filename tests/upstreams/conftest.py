"""A scripted server and a channel to it."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from gateway.upstreams.streamable_http import StreamableHttp
from tests.support.calling import LIMIT
from tests.support.scripted import Scripted


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted(sessions=False) as scripted:
        yield scripted


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=2)
    async with aiohttp.ClientSession(timeout=timeout) as client:
        yield client


@pytest.fixture
def channel(http: aiohttp.ClientSession, server: Scripted) -> StreamableHttp:
    return StreamableHttp(http, server.url, headers={"Authorization": "Bearer t"}, max_event_bytes=LIMIT)
