"""May a browser page, or whoever gives this Host, talk to us? Pure; it knows no request.

A page on a foreign origin can reach a server on this machine, and can pass for
a same-origin page by letting its own name point here (DNS rebinding). Then
`Host` is a foreign name, which no honest caller of a loopback server sends
(basic/transports/streamable-http, "Security & Endpoint").
"""

from collections.abc import Collection
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def origin_allowed(
    origin: str | None,
    host: str | None,
    *,
    listen_host: str,
    allowed_origins: Collection[str],
    allowed_hosts: Collection[str],
) -> bool:
    """Whether to serve a request with these `Origin` and `Host` headers.

    Bound to loopback, only loopback names and configured ones are served.
    Bound elsewhere, any Host is, unless some are configured; an Origin must be
    that of the Host itself, or configured.
    """
    if not host_allowed(host, listen_host=listen_host, allowed_hosts=allowed_hosts):
        return False
    is_local = is_loopback(listen_host)
    allowed = {_canonical(entry) for entry in allowed_origins}
    if origin is None or "*" in allowed or _canonical(origin) in allowed:
        return True
    page = _split(origin)
    if page is None or page.scheme not in _DEFAULT_PORTS:
        return False
    return _is_same_origin(page, host) or (is_local and is_loopback(page.hostname or ""))


def host_allowed(host: str | None, *, listen_host: str, allowed_hosts: Collection[str]) -> bool:
    """The half of it that is about `Host`."""
    is_local = is_loopback(listen_host)
    if "*" in allowed_hosts or not (is_local or allowed_hosts):
        return True
    authority = None if host is None else _split(f"//{host}")
    if authority is None or authority.hostname is None:
        return False
    if is_local and is_loopback(authority.hostname):
        return True
    return any(_matches(authority, entry) for entry in allowed_hosts)


def is_loopback(host: str) -> bool:
    """Whether the name can only mean this machine."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _matches(authority: SplitResult, entry: str) -> bool:
    """A configured host without a port stands for all its ports."""
    wanted = _split(f"//{entry}")
    return (
        wanted is not None
        and wanted.hostname == authority.hostname
        and (wanted.port is None or wanted.port == authority.port)
    )


def _is_same_origin(page: SplitResult, host: str | None) -> bool:
    authority = None if host is None else _split(f"//{host}")
    if authority is None or page.hostname is None or page.hostname != authority.hostname:
        return False
    # Host leaves out its scheme's default port, and behind a TLS proxy only the page knows the scheme.
    default = _DEFAULT_PORTS[page.scheme]
    return (page.port or default) == (authority.port or default)


def _canonical(origin: str) -> str:
    """One spelling per origin; what is no URL (`null`, an extension's) is compared as it is."""
    page = _split(origin)
    if page is None or page.scheme not in _DEFAULT_PORTS or page.hostname is None:
        return origin
    return f"{page.scheme}://{page.hostname}:{page.port or _DEFAULT_PORTS[page.scheme]}"


def _split(url: str) -> SplitResult | None:
    """The parts, if they are an origin's or an authority's and nothing more."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where it is no number
    except ValueError:
        return None
    if parts.username is not None or parts.path not in {"", "/"} or parts.query or parts.fragment:
        return None
    return parts
