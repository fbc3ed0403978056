"""Gateways that are processes of their own, before one legacy server, with one sealing key and perhaps one Redis."""

import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support.serving import Serving, serving
from tests.support.waiting import until


class Fleet:
    """Replicas that are alike."""

    def __init__(self, folder: Path, upstream: dict[str, Any], **settings: Any) -> None:
        self._folder = folder
        self._upstream = upstream
        self._settings = settings
        self._sealing = {"keys": [secrets.token_urlsafe(32)]}

    @contextlib.asynccontextmanager
    async def alive(self, name: str, **upstream: Any) -> AsyncIterator[Serving]:
        """One more of them; keywords change its upstream's section."""
        folder = self._folder / name
        folder.mkdir()
        settings = {**self._upstream, **upstream}
        async with serving(folder, settings, sealing=self._sealing, **self._settings) as gateway:
            yield gateway


async def until_said(gateway: Serving, words: str, seconds: float = 15.0) -> None:
    """Wait until a replica's log has these words."""

    async def look() -> bool:
        return words in gateway.said()

    await until(look, seconds)
