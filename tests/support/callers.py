"""Two callers in every way of telling callers apart: what each sends, and what the gateway is to be told for it."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.issuer import issuing

MODES = ("none", "passthrough", "passthrough+jwt", "jwt", "api_key", "header")
KNOWN = MODES[1:]
"""Those in which callers are told apart."""
VERIFIED = MODES[2:]
"""Those in which the gateway itself decides who somebody is."""


@dataclass(frozen=True)
class Callers:
    """Ann and Bob."""

    auth: Mapping[str, Any]
    ann: Mapping[str, str]
    """Her headers."""
    bob: Mapping[str, str]


@asynccontextmanager
async def callers(mode: str) -> AsyncIterator[Callers]:
    """As this mode wants them."""
    if mode == "none":
        yield Callers({"mode": "none"}, {}, {})
    elif mode == "passthrough":
        yield Callers({"mode": mode}, _bearer("ann's"), _bearer("bob's"))
    elif mode == "api_key":
        keys = {name: hashlib.sha256(f"key-of-{name}".encode()).hexdigest() for name in ("ann", "bob")}
        yield Callers(
            {"mode": mode, "api_keys": keys}, {"X-API-Key": "key-of-ann"}, {"X-API-Key": "key-of-bob"}
        )
    elif mode == "header":
        auth = {"mode": mode, "trusted_peers": ["127.0.0.1"]}
        yield Callers(auth, {"X-Forwarded-User": "ann"}, {"X-Forwarded-User": "bob"})
    else:
        async with issuing() as issuer:
            jwt = {"issuer": issuer.url, "audience": ["crm"], "jwks_url": f"{issuer.url}/jwks"}
            how = {"mode": mode.partition("+")[0], "jwt": jwt}
            yield Callers(how, _bearer(issuer.token(sub="ann")), _bearer(issuer.token(sub="bob")))


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
