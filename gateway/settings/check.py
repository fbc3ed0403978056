"""Finds settings that are fine one by one and wrong together. Uses no network."""

from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Final
from urllib.parse import urlsplit

from gateway.settings.check_auth import check_process, check_upstream
from gateway.settings.keys import KeysFileUnusable, decode_key, read_keys_file
from gateway.settings.model import Settings
from gateway.settings.problems import KeyPath, Problem, show
from gateway.settings.upstream import Keeping, Upstream

_ANY_IPV4: Final = str(IPv4Address(0))


def check(settings: Settings) -> list[Problem]:
    """Return everything that is wrong between settings."""
    return [
        *_listeners(settings),
        *_circles(settings),
        *_keys(settings),
        *_store(settings),
        *_paths(settings),
        *_upstreams(settings),
        *check_process(settings),
    ]


def _listeners(settings: Settings) -> Iterator[Problem]:
    if settings.admin is not None and settings.admin.port != 0 and settings.admin == settings.listen:
        yield Problem("admin", "is the same address as listen")


def _circles(settings: Settings) -> Iterator[Problem]:
    """A gateway in front of itself: each call would wait for another of its own until its time is over."""
    own = [("listen", settings.listen), ("admin", settings.admin)]
    for name, upstream in settings.upstreams.items():
        parts = urlsplit(upstream.url or "")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        for key, address in own:
            if address is not None and address.port == port and parts.hostname in _ways_to(address.host):
                yield Problem(
                    _at(name, "url"),
                    f"is where this gateway itself listens: choose another address for {key}",
                )


def _ways_to(bound: str) -> tuple[str, ...]:
    """What a listener that is bound to this is called on its own machine."""
    name = bound.lower()
    if name in (_ANY_IPV4, "127.0.0.1"):
        return (name, "localhost", "127.0.0.1")
    if name == "::1":
        return (name, "localhost")
    if name in ("::", "localhost"):
        return (name, "localhost", "127.0.0.1", "::1")
    return (name,)


def _keys(settings: Settings) -> Iterator[Problem]:
    ring = [decode_key(key.get_secret_value()) for key in settings.sealing.keys]
    for place, key in enumerate(ring):
        if key in ring[:place]:
            # A rotation that went wrong: the old key is gone, and with it every ticket that it sealed.
            yield Problem(show(("sealing", "keys", place)), f"is the same key as [{ring.index(key)}]")
    if settings.sealing.keys_file is not None:
        try:
            more = [decode_key(text) for text in read_keys_file(settings.sealing.keys_file)]
        except KeysFileUnusable as error:
            yield Problem("sealing.keys_file", str(error))
        else:
            if len({*ring, *more}) < len({*ring}) + len(more):
                yield Problem("sealing.keys_file", "contains a key twice, or one that is also in keys")


def _store(settings: Settings) -> Iterator[Problem]:
    if settings.store.is_shared and not settings.sealing.keys and settings.sealing.keys_file is None:
        yield Problem(
            "sealing.keys", "is required with a shared store: otherwise each replica would make its own"
        )


def _paths(settings: Settings) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for name in settings.upstreams:
        path = settings.path_of(name)
        first = taken.setdefault(path, name)
        if first != name:
            yield Problem(_at(name, "path"), f"is the same as for {first}: {path}")


def _upstreams(settings: Settings) -> Iterator[Problem]:
    for name, upstream in settings.upstreams.items():
        yield from _one_upstream(name, upstream)
        yield from check_upstream(name, upstream, settings)


def _one_upstream(name: str, upstream: Upstream) -> Iterator[Problem]:
    yield from _way_to(name, upstream)
    asks = upstream.asks
    if asks.roots == "static" and "static_roots" not in asks.model_fields_set:
        yield Problem(_at(name, "asks", "static_roots"), "is required with roots: static; [] means no roots")
    if asks.roots != "static" and asks.static_roots:
        yield Problem(_at(name, "asks", "static_roots"), "only applies with roots: static")
    sessions = upstream.sessions
    # Only what was written: with the default, whoever wants one session would have to say two things.
    if "warm" in sessions.model_fields_set and sessions.warm > sessions.max:
        yield Problem(_at(name, "sessions", "warm"), "is more than sessions.max")
    for burst, rate in (("burst", "per_principal"), ("total_burst", "total")):
        if getattr(upstream.rate, burst) is not None and getattr(upstream.rate, rate) is None:
            yield Problem(_at(name, "rate", burst), f"only applies with {rate}")
    if upstream.settle >= upstream.call_timeout:
        yield Problem(_at(name, "settle"), "should be shorter than call_timeout")
    if upstream.slice and upstream.slice <= upstream.settle:
        yield Problem(_at(name, "slice"), "should be longer than settle")
    if upstream.auth.mode != "none":
        yield from _shared(name, upstream)
    for tool, names in upstream.input_keys.items():
        if len(set(names)) < len(names) or "" in names:
            yield Problem(_at(name, "input_keys", tool), "should be different names, none of them empty")


def _way_to(name: str, upstream: Upstream) -> Iterator[Problem]:
    """Either a URL or a command, and nothing that belongs to the other."""
    if upstream.command:
        if upstream.url is not None:
            yield Problem(
                _at(name, "command"), "cannot be combined with url: a server either listens or is started"
            )
        if upstream.transport not in ("auto", "stdio"):
            yield Problem(_at(name, "transport"), "can only be stdio with command")
        if upstream.era == "modern":
            yield Problem(_at(name, "era"), "can be modern only with url")
        if upstream.auth.mode == "passthrough":
            # Nobody would check the credentials: every caller with any token at all would be let in.
            yield Problem(
                _at(name, "auth", "mode"), "cannot be passthrough with command: a process gets no headers"
            )
        return
    if upstream.url is None:
        yield Problem(_at(name, "url"), "is required, unless there is a command")
    if upstream.transport == "sse" and upstream.era == "modern":
        yield Problem(_at(name, "era"), "cannot be modern with transport: sse, which is a legacy one")
    if upstream.transport == "stdio":
        yield Problem(_at(name, "transport"), "can be stdio only with command")
    for key in ("env", "cwd"):
        if getattr(upstream, key):
            yield Problem(_at(name, key), "only applies with command")


def _shared(name: str, upstream: Upstream) -> Iterator[Problem]:
    """Where callers are told apart, nothing of one may be given to another."""
    public: list[tuple[str, ...]] = [("caching", "scope")] if upstream.caching.scope == "public" else []
    for kind in type(upstream.caching).model_fields:
        own = getattr(upstream.caching, kind)
        if isinstance(own, Keeping) and own.scope == "public":
            public.append(("caching", kind, "scope"))
    if upstream.cache.lists == "public":
        public.append(("cache", "lists"))
    for path in public:
        yield Problem(_at(name, *path), f"cannot be public with auth.mode: {upstream.auth.mode}")


def _at(upstream: str, *keys: str) -> str:
    path: KeyPath = ("upstreams", upstream, *keys)
    return show(path)
