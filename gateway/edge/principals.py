"""Who is calling, from what the request carries. It knows no upstream and keeps no credential."""

import hashlib
import hmac
from typing import Final, Literal

from gateway.relay.request import ANONYMOUS, Principal

_NOBODY: Final = Principal(ANONYMOUS, b"", is_authenticated=False)


class Doorkeeper:
    """Turns a credential into a principal, as one upstream's `auth` says."""

    def __init__(self, mode: Literal["none", "passthrough"], secret: bytes) -> None:
        self._mode = mode
        self._secret = secret

    def admit(self, authorization: str | None) -> Principal:
        """The principal of a request with this `Authorization` header.

        Under `passthrough` a caller without a credential is nobody in
        particular: whether that is good enough is the upstream's to say.
        """
        if self._mode == "none" or not authorization:
            return _NOBODY
        material = authorization.encode("utf-8", "surrogateescape")
        digest = hmac.digest(self._secret, material, hashlib.sha256).hex()
        return Principal(digest[:32], material, is_authenticated=True, authorization=authorization)
