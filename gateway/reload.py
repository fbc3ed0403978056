"""What may change while the gateway runs: the sealing keys, and the listener's certificate. It serves nobody.

On SIGHUP the configuration is read again, as a whole; what is wrong with it is
logged, and everything stays as it was. A keys file is also looked at from time
to time, since a mounted secret changes without a word. The rest of the
configuration needs a restart.
"""

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from gateway.sealing.keyring import Keyring
from gateway.settings.keys import KeysFileUnusable, read_keys_file
from gateway.settings.load import ConfigInvalid, sealing_secrets
from gateway.settings.model import Settings
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import LogEvent

Reread: TypeAlias = Callable[[], Settings]
"""Reads the configuration again. Raises `ConfigInvalid`."""


class Renewal:
    """Renews what can be renewed."""

    def __init__(
        self,
        settings: Settings,
        keyring: Keyring,
        reread: Reread | None,
        renew_certificate: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._keyring = keyring
        self._reread = reread
        self._renew_certificate = renew_certificate
        self._log = get_logger()

    def renew(self) -> None:
        """Do so now. What is unusable changes nothing."""
        try:
            settings = self._settings if self._reread is None else self._reread()
            ring = _ring_of(settings)
            self._renew_certificate()
        except (ConfigInvalid, ValueError) as error:
            self._log.error(LogEvent.CONFIG_RELOAD_FAILED, detail=_told(error))
            return
        self._turn(ring)  # nothing can go wrong with it any more: all of it is new, or none
        self._settings = settings
        self._log.info(
            LogEvent.CONFIG_RELOADED, detail="sealing keys and certificates; the rest needs a restart"
        )

    async def watch(self) -> None:
        """Look at the keys file from time to time, for as long as it runs."""
        file, pause = self._settings.sealing.keys_file, self._settings.sealing.keys_poll
        if file is None or not pause:
            return
        seen = await asyncio.to_thread(_state_of, file)
        while True:
            await asyncio.sleep(pause)
            now = await asyncio.to_thread(_state_of, file)
            if now != seen:
                seen = now
                try:
                    self._turn(_ring_of(self._settings))
                except (ConfigInvalid, ValueError) as error:
                    self._log.error(LogEvent.CONFIG_RELOAD_FAILED, detail=_told(error))

    def _turn(self, ring: Keyring | None) -> None:
        if ring is None:
            return
        before = [key.id for key in self._keyring.keys]
        # A key that stays is the same object: what was derived from it is kept.
        kept = {key.id: key for key in self._keyring.keys}
        self._keyring.turn([kept.get(key.id, key) for key in ring.keys])
        after = [key.id for key in self._keyring.keys]
        if before != after:
            self._log.info(LogEvent.KEYS_TURNED, key_ids=after)


def _ring_of(settings: Settings) -> Keyring | None:
    """The keys as they are written now. None: they were made at the start of this process, and are not read again."""
    texts = sealing_secrets(settings)
    return Keyring.from_secrets(texts) if texts else None


def _state_of(path: Path) -> bytes | None:
    try:
        return hashlib.sha256("\n".join(read_keys_file(path)).encode()).digest()
    except KeysFileUnusable:
        return None


def _told(error: Exception) -> str:
    """Problems say which key is wrong by its place; none of them repeats a value."""
    return "; ".join(map(str, error.problems)) if isinstance(error, ConfigInvalid) else str(error)
