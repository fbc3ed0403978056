"""Where replicas meet, as one writes it: `memory://`, `redis://…`, `rediss://…`. Opens nothing, shows no password."""

import re
from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from pydantic import SecretStr

STORE_PATTERN: Final = r"^(memory://|rediss?://[^\s/]+(/\d{0,4})?(\?\S*)?)$"
_DATABASE: Final = re.compile(r"/?|/\d{1,4}", re.ASCII)
_TLS_FILES: Final = frozenset({"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})
_REDIS: Final = frozenset({"redis", "rediss"})


class StoreUrl(SecretStr):
    """The address of a store. Its text is without credentials; `get_secret_value` is what connects."""

    @property
    def is_shared(self) -> bool:
        """Do other processes find the same there?"""
        return self.get_secret_value() != MEMORY

    def _display(self) -> str:
        value = self.get_secret_value()
        if value == MEMORY:
            return value
        try:
            parts = urlsplit(value)
            return f"{parts.scheme}://{_host(parts)}:{parts.port or 6379}/{parts.path.strip('/') or 0}"
        except ValueError:
            return "**********"


MEMORY: Final = "memory://"


def check_store_url(url: StoreUrl) -> StoreUrl:
    """Refuse what is no address of a store, without repeating it."""
    value = url.get_secret_value()
    if value == MEMORY:
        return url
    wrong = ValueError("should be memory:// or redis://HOST:PORT/DB (rediss:// with TLS)")
    if not value.isascii() or not value.isprintable() or " " in value or "\\" in value:
        raise wrong
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in _REDIS or not parts.hostname or port == 0:
        raise wrong
    if not _DATABASE.fullmatch(parts.path):
        raise ValueError("should have a database number after the host, or nothing")
    if parts.fragment:
        raise ValueError("should not have a #fragment; in a password it is written %23")
    _check_query(parts)
    return url


def _check_query(parts: SplitResult) -> None:
    try:
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise ValueError("should have only name=value pairs after ?") from None
    # The library would take any of its own settings from here, time limits included.
    if options.keys() - _TLS_FILES or (options and parts.scheme != "rediss"):
        raise ValueError(
            "should have only ssl_ca_certs, ssl_certfile and ssl_keyfile after ?, and only with rediss://"
        )


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host
