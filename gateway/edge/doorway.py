"""Makes the door of one upstream from its settings, with the keys and addresses it needs. It admits nobody itself."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.edge.challenges import Addresses
from gateway.edge.doors import Door, KeyDoor, MeshDoor, OpenDoor, PassingDoor, TokenDoor
from gateway.edge.jwks import Jwks
from gateway.edge.principals import Naming
from gateway.edge.tokens import Verifier
from gateway.settings.auth import Auth


@dataclass(frozen=True, slots=True)
class Doorway:
    """How callers come to one upstream."""

    door: Door
    auth: Auth
    addresses: Addresses
    jwks: Jwks | None = None
    """To be kept fresh, where tokens are verified."""


def doorway(auth: Auth, addresses: Addresses, *, name: Naming, now: Callable[[], float]) -> Doorway:
    """As the settings say."""
    if auth.verifies:
        jwks = Jwks(auth.jwt, now=now)
        audience = auth.jwt.audience or (addresses.resource(None),)
        verifier = Verifier(auth.jwt, jwks, audience=audience, now=now)
        return Doorway(TokenDoor(auth, jwks, verifier, name, addresses), auth, addresses, jwks)
    return Doorway(_door(auth, name), auth, addresses)


def _door(auth: Auth, name: Naming) -> Door:
    match auth.mode:
        case "none":
            return OpenDoor()
        case "passthrough":
            return PassingDoor(name)
        case "api_key":
            return KeyDoor(auth, name)
        case "header":
            return MeshDoor(auth, name)
        case "jwt":
            raise AssertionError("without an issuer; the check refuses that")
