"""A pool of sessions that lead nowhere, and the means to watch it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from gateway.eras.discovery import Introduction
from gateway.settings.upstream import Sessions
from gateway.upstreams.background import Background
from gateway.upstreams.pool import Caller, Pool
from gateway.upstreams.session import Session
from tests.support.channels import FakeChannel


def caller(name: str = "ann", *, is_authenticated: bool = True) -> Caller:
    """Somebody."""
    return Caller(name, is_authenticated, "{}", "{}", None)


class Opener:
    """Opens sessions for a pool: at once, unless `gate` is closed; not at all while there is a `failure`."""

    def __init__(self, session_id: str | None = "s") -> None:
        self.opened: list[Session] = []
        self.channels: dict[Session, FakeChannel] = {}
        self.failure: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        self._session_id = session_id

    async def __call__(self, _: Caller) -> Session:
        self.waiting += 1
        try:
            await self.gate.wait()
        finally:
            self.waiting -= 1
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        channel = FakeChannel(self._session_id)
        session = Session(
            channel,
            Introduction("2025-11-25", {}, None, None),
            background=Background(),
            on_early_ask=lambda _session, _ask: None,
            on_end=lambda _session: None,
        )
        self.opened.append(session)
        self.channels[session] = channel
        return session

    def is_closed(self, session: Session) -> bool:
        """Was the server told that the session is over?"""
        return self.channels[session].is_closed


def settings(**given: Any) -> Sessions:
    """Sessions that are pooled, without spares, unless told otherwise."""
    return Sessions.model_validate({"mode": "pooled", "warm": 0, "wait": "5s", **given})


@asynccontextmanager
async def pooling(opener: Opener, **given: Any) -> AsyncIterator[Pool]:
    """A pool for the time of the block."""
    pool = Pool(settings(**given), opener)
    try:
        yield pool
    finally:
        await pool.close()
