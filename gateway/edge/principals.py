"""Names callers by their credentials, without revealing these. It knows no header and no upstream, and keeps none.

What a principal is made of (`material`) depends on how it proved itself, and two
ways never give the same: a token's subject is not the API key of that name. It
does not depend on any key, so it is the same on every replica, after every
restart and through every rotation. Only its name inside a process is keyed.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from gateway.relay.request import ANONYMOUS, Principal

NOBODY: Final = Principal(ANONYMOUS, b"", is_authenticated=False)
Naming: TypeAlias = Callable[[bytes], str]
"""Gives material a name: `sealing.keyring.Key.principal`."""


def by_credential(name: Naming, authorization: str) -> Principal:
    """Whoever has this very credential. A refreshed one is somebody else."""
    material = authorization.encode("utf-8", "surrogateescape")
    return Principal(name(material), material, is_authenticated=True, authorization=authorization)


def by_claims(name: Naming, issuer: str, subject: str, authorization: str | None) -> Principal:
    """Whom a token's issuer calls by this name, whichever token says so."""
    return replace(_known(name, ("jwt", issuer, subject), authorization), outlives_credential=True)


def by_key(name: Naming, key_name: str, authorization: str | None) -> Principal:
    """Whom the configuration calls by this name, whichever key is theirs at the time."""
    return _known(name, ("key", key_name), authorization)


def by_header(name: Naming, identity: str, authorization: str | None) -> Principal:
    """Whom the mesh calls by this name."""
    return _known(name, ("header", identity), authorization)


def ownership(principal: Principal) -> str:
    """What sessions of a legacy client are sealed for. Never sent anywhere, so it needs no key."""
    return hashlib.sha256(principal.material).hexdigest()


def _known(name: Naming, parts: tuple[str, ...], authorization: str | None) -> Principal:
    # No header and no configured name has a NUL in it; a claim may, and must not pass for two.
    material = b"\0" + b"\0".join(
        part.encode("utf-8", "surrogatepass").replace(b"\\", b"\\\\").replace(b"\0", b"\\0") for part in parts
    )
    return Principal(name(material), material, is_authenticated=True, authorization=authorization)
