"""A scripted server and a channel to it."""

from collections.abc import AsyncIterator

import pytest

from gateway.upstreams.http1 import Http1
from gateway.upstreams.http_client import new_client
from gateway.upstreams.streamable_http import StreamableHttp
from tests.support.calling import LIMIT
from tests.support.scripted import Scripted


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async with Scripted(sessions=False) as scripted:
        yield scripted


@pytest.fixture
async def http() -> AsyncIterator[Http1]:
    client = new_client(connect_timeout=2, version="9")
    yield client
    await client.close()


@pytest.fixture
def channel(http: Http1, server: Scripted) -> StreamableHttp:
    return StreamableHttp(http, server.url, headers={"Authorization": "Bearer t"}, max_event_bytes=LIMIT)
