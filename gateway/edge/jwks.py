"""An issuer's public keys: fetched, kept, fetched again. It verifies nothing and knows no token.

fresh     used as they are
stale     the issuer does not answer: used all the same, since keys change rarely and outages end
unknown   a token names a key that is not there: fetched at once, but not more often than `PAUSE_SECONDS`,
so that made-up names cannot hammer the issuer
none      never got any: nobody can be let in, and everybody is told to come again
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import msgspec

from gateway.settings.auth import Jwt
from gateway.settings.certificates import trusting
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import LogEvent

if TYPE_CHECKING:
    from joserfc.jwk import Key

PAUSE_SECONDS: Final = 10.0
"""Between two fetches, whoever wants them and however the last one ended."""
_FETCH_SECONDS: Final = 5.0
_MOST_BYTES: Final = 256 * 1024
_MOST_KEYS: Final = 100
_PUBLIC_KINDS: Final = frozenset({"RSA", "EC", "OKP"})


class KeysUnusable(ValueError):
    """What was fetched or read is no set of keys. The text is for the log."""


class Jwks:
    """The keys of one issuer; `keep_fresh` runs from start to end."""

    def __init__(self, settings: Jwt, *, now: Callable[[], float]) -> None:
        self._url = settings.jwks_url
        self._file = settings.jwks_file
        self._ttl = settings.jwks_ttl
        self._ssl = trusting(settings.ca_file) if settings.ca_file is not None else True
        self._now = now
        self._lock = asyncio.Lock()
        self._not_before = float("-inf")
        self._last: bytes | None = None
        self._is_fresh = False
        """Did the last fetch bring keys?"""
        self._log = get_logger().bind(issuer=settings.issuer)
        self.keys: Sequence[Key] = ()
        self.generation = 0
        """Grows when the keys change: what was verified with the old ones is to be verified again."""

    async def keep_fresh(self) -> None:
        """Fetch now, and again each time the keys are old, for as long as it runs."""
        while True:
            await self.refresh()
            await asyncio.sleep(self._ttl if self._is_fresh else min(self._ttl, PAUSE_SECONDS))

    async def refresh(self) -> None:
        """Fetch, unless that was just done. One at a time, for all who want it."""
        async with self._lock:
            if self._now() < self._not_before:
                return
            self._not_before = self._now() + PAUSE_SECONDS
            try:
                self._is_fresh = False
                data = await self._read()
                if data != self._last:
                    self.keys, self._last = parse(data), data
                    self.generation += 1
                self._is_fresh = True
            except (OSError, KeysUnusable, aiohttp.ClientError, TimeoutError) as error:
                self._log.warning(LogEvent.JWKS_FAILED, detail=_why(error), stale=bool(self.keys))

    async def _read(self) -> bytes:
        if self._file is not None:
            return await asyncio.to_thread(_read_file, self._file)
        if self._url is None:
            raise AssertionError("neither URL nor file")
        return await _fetch(self._url, self._ssl)


def parse(data: bytes) -> list["Key"]:
    """The keys in a JWK set that may verify a signature. One that cannot be read is left out, not the rest.

    Raises:
        KeysUnusable: it is no such set, or none of its keys is of use.
    """
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise KeysUnusable("not JSON") from None
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list) or len(listed) > _MOST_KEYS:
        raise KeysUnusable("no list of keys, or too many")
    keys = [key for key in map(_key, listed) if key is not None]
    if not keys:
        raise KeysUnusable("no public key for signatures in it")
    return keys


def _key(value: Any) -> "Key | None":
    from joserfc.errors import JoseError  # noqa: PLC0415 - only where tokens are verified
    from joserfc.jwk import JWKRegistry  # noqa: PLC0415

    # Never a symmetric key: whoever can read the set could sign with it.
    if not isinstance(value, Mapping) or value.get("kty") not in _PUBLIC_KINDS or "d" in value:
        return None
    if value.get("use", "sig") != "sig":
        return None
    try:
        return JWKRegistry.import_key(dict(value))
    except (JoseError, ValueError, TypeError, KeyError):
        return None


def _why(error: Exception) -> str:
    match error:
        case KeysUnusable():
            return str(error)
        case OSError(strerror=str(words)):
            return f"{type(error).__name__}: {words}"
        case _:
            return type(error).__name__


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise KeysUnusable("too large")
    return data


async def _fetch(url: str, context: ssl.SSLContext | bool) -> bytes:  # noqa: FBT001 - as aiohttp has it
    async with (
        aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_FETCH_SECONDS), cookie_jar=aiohttp.DummyCookieJar()
        ) as http,
        # Not followed anywhere: who the issuer is was configured, not told by somebody.
        http.get(url, allow_redirects=False, ssl=context, headers={"Accept": "application/json"}) as response,
    ):
        if response.status != 200:
            raise KeysUnusable(f"HTTP {response.status}")
        data = bytearray()
        async for chunk in response.content.iter_any():
            data += chunk
            if len(data) > _MOST_BYTES:
                raise KeysUnusable("too large")
        return bytes(data)
