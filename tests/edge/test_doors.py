"""Doors: who gets in and as whom, by headers and address alone."""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from gateway.edge.challenges import Addresses
from gateway.edge.doors import Door, bearer_in
from gateway.edge.doorway import doorway
from gateway.edge.jwks import parse
from gateway.edge.principals import NOBODY
from gateway.errors import Forbidden, InvalidRequest, Overloaded, Unauthorized
from gateway.relay.request import Principal
from gateway.sealing.keyring import Key
from gateway.settings.auth import Auth
from tests.support.issuer import Issuer, new_key

ISSUER = Issuer()
JWT: dict[str, Any] = {
    "mode": "jwt",
    "jwt": {"issuer": ISSUER.url, "audience": ["crm"], "jwks_url": f"{ISSUER.url}/jwks"},
}
NAMES = Key(b"s" * 32).principal
METADATA = 'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/crm/mcp"'
Headers = Sequence[tuple[str, str]]


def request(headers: Headers = (), peer: str = "10.1.2.3") -> web.BaseRequest:
    made = make_mocked_request("POST", "/crm/mcp", headers=CIMultiDict(headers))
    return made.clone(remote=peer)


def door(**auth: Any) -> Door:
    checked = Auth.model_validate(auth)
    made = doorway(
        checked,
        Addresses("/crm/mcp", "https://mcp.example.com"),
        name=NAMES,
        now=lambda: 1_800_000_000.0,
    )
    if made.jwks is not None:
        made.jwks.keys = parse(json.dumps(ISSUER.jwks()).encode())
        made.jwks._not_before = float("inf")  # nothing is fetched here
    return made.door


def admit(given: Door, headers: Headers = (), peer: str = "10.1.2.3") -> Principal:
    found = given.admit(request(headers, peer))
    assert found is not None
    return found


def token(**claims: Any) -> tuple[str, str]:
    return ("Authorization", ISSUER.bearer(iat=1_800_000_000, exp=1_800_000_300, **claims))


# --- none, passthrough --------------------------------------------------------------------


def test_without_authentication_everybody_is_nobody_and_nothing_goes_upstream() -> None:
    """Ours: `auth: none` forwards no credential, whatever a client sends."""
    assert admit(door(), [("Authorization", "Bearer secret")]) is NOBODY


@pytest.mark.parametrize("headers", [(), [("Authorization", "")]])
def test_under_passthrough_a_caller_without_a_credential_is_nobody(headers: Headers) -> None:
    """Ours: whether that is good enough is the upstream's to say."""
    assert admit(door(mode="passthrough"), headers) is NOBODY


def test_under_passthrough_the_credential_is_who_somebody_is() -> None:
    """Issue: principal = keyed hash of the credential."""
    given = door(mode="passthrough")
    ann = admit(given, [("Authorization", "Bearer ann")])
    assert ann.authorization == "Bearer ann"
    assert ann.id != admit(given, [("Authorization", "Bearer bob")]).id
    assert not ann.outlives_credential


@pytest.mark.requirement("R53")
@pytest.mark.parametrize(
    "auth",
    [{"mode": "passthrough"}, JWT, {"mode": "api_key", "api_keys": {"ci": "ab" * 32}}],
    ids=["passthrough", "jwt", "api_key"],
)
def test_two_credentials_are_none(auth: dict[str, Any]) -> None:
    """Ours: we would read one, and whoever reads on the other."""
    with pytest.raises(InvalidRequest, match="More than one"):
        door(**auth).admit(request([("Authorization", "Bearer a"), ("authorization", "Bearer b")]))


# --- jwt ------------------------------------------------------------------------------------


def test_a_good_token_is_its_subject_and_goes_no_further() -> None:
    """Specification: a token issued for us MUST NOT be passed through."""
    given = door(**JWT)
    ann = admit(given, [token()])
    assert ann.is_authenticated
    assert ann.outlives_credential
    assert ann.authorization is None
    assert "authorization" in given.withheld
    assert admit(given, [token(jti="another")]).id == ann.id
    assert admit(given, [token(sub="bob")]).id != ann.id


def test_a_token_goes_on_where_that_is_configured() -> None:
    """Issue: upstream credentials `forward`."""
    given = door(**JWT, upstream="forward")
    header = token()
    assert admit(given, [header]).authorization == header[1]
    assert "authorization" not in given.withheld


@pytest.mark.requirement("R49")
@pytest.mark.parametrize("headers", [(), [("Authorization", "Basic YTpi")], [("Authorization", "Bearer")]])
def test_without_a_token_the_challenge_says_where_to_get_one(headers: Headers) -> None:
    """RFC 6750, 3.1: no error code where no token was given."""
    with pytest.raises(Unauthorized) as refusal:
        door(**JWT, scopes=["crm:read", "crm:write"]).admit(request(headers))
    assert refusal.value.http_status == 401
    assert refusal.value.headers == {"WWW-Authenticate": f'Bearer scope="crm:read crm:write", {METADATA}'}


@pytest.mark.requirement("R47")
@pytest.mark.parametrize("claims", [{"aud": "other"}, {"exp": 1}, {"iss": "https://else.example"}])
def test_a_bad_token_is_told_so(claims: dict[str, Any]) -> None:
    """RFC 6750, 3.1: `invalid_token`, 401."""
    with pytest.raises(Unauthorized) as refusal:
        door(**JWT).admit(request([("Authorization", ISSUER.bearer(**{"exp": 1_800_000_300, **claims}))]))
    challenge = refusal.value.headers["WWW-Authenticate"]
    assert challenge.startswith('Bearer error="invalid_token", ')
    assert METADATA in challenge


@pytest.mark.requirement("R51")
@pytest.mark.parametrize("scope", [None, "", "crm:read", "crm:reader crm:write2"])
def test_a_token_without_the_scopes_is_forbidden_and_told_all_of_them(scope: str | None) -> None:
    """Specification: all scopes in a single challenge."""
    with pytest.raises(Forbidden) as refusal:
        door(**JWT, scopes=["crm:read", "crm:write"]).admit(request([token(scope=scope)]))
    assert refusal.value.http_status == 403
    assert refusal.value.headers["WWW-Authenticate"] == (
        f'Bearer error="insufficient_scope", scope="crm:read crm:write", {METADATA}'
    )


@pytest.mark.requirement("R54")
@pytest.mark.parametrize(
    ("scope", "is_enough"),
    [
        ("crm:read", True),
        ("crm:write", True),
        ("crm:admin", True),
        ("crm:root", True),
        ("crm:reader", False),
        ("crm", False),
    ],
)
def test_a_broader_scope_stands_for_those_that_it_includes(scope: str, is_enough: bool) -> None:  # noqa: FBT001
    """Specification: servers MUST account for scope hierarchies; here over several steps, and in a circle."""
    includes = {"crm:root": ["crm:admin"], "crm:admin": ["crm:write"], "crm:write": ["crm:read", "crm:admin"]}
    given = door(**JWT, scopes=["crm:read"], scope_includes=includes)
    if is_enough:
        assert admit(given, [token(scope=scope)]).is_authenticated
    else:
        with pytest.raises(Forbidden):
            given.admit(request([token(scope=scope)]))


@pytest.mark.requirement("R52")
def test_a_token_counts_in_its_header_only() -> None:
    """Specification: access tokens MUST NOT be in the query."""
    found = make_mocked_request("POST", f"/crm/mcp?access_token={ISSUER.token()}")
    with pytest.raises(Unauthorized):
        door(**JWT).admit(found)


async def test_a_key_that_is_not_known_is_waited_for_and_then_refused() -> None:
    """Ours: what has to wait is not done in the quick way; rate-limited, so nothing is fetched here."""
    given = door(**JWT)
    asked = request([("Authorization", ISSUER.bearer(key=new_key("second"), exp=1_800_000_300))])
    assert given.admit(asked) is None
    with pytest.raises(Unauthorized):
        await given.admit_later(asked)


async def test_without_any_keys_nobody_is_told_that_the_token_is_bad() -> None:
    """Ours: it may be good; come again."""
    given = door(**JWT)
    given._jwks.keys = ()  # type: ignore[attr-defined]
    asked = request([token()])
    assert given.admit(asked) is None
    with pytest.raises(Overloaded):
        await given.admit_later(asked)


def test_passthrough_with_verified_tokens_keeps_a_caller_through_a_refresh() -> None:
    """Issue: principal of verified claims when keys are given."""
    given = door(mode="passthrough", jwt=JWT["jwt"])
    first, second = token(jti="1"), token(jti="2")
    ann, later = admit(given, [first]), admit(given, [second])
    assert ann.id == later.id
    assert (ann.authorization, later.authorization) == (first[1], second[1])
    assert admit(given) is NOBODY
    with pytest.raises(Unauthorized):
        given.admit(request([("Authorization", "Bearer nonsense")]))


# --- api_key ----------------------------------------------------------------------------------

KEYS = {"ci": hashlib.sha256(b"key-of-ci").hexdigest(), "ops": hashlib.sha256(b"key-of-ops").hexdigest()}


@pytest.mark.parametrize("header", [("Authorization", "Bearer key-of-ci"), ("X-API-Key", "key-of-ci")])
def test_a_key_is_its_name(header: tuple[str, str]) -> None:
    """Issue: hashed in configuration, name = principal."""
    given = door(mode="api_key", api_keys=KEYS)
    ci = admit(given, [header])
    assert ci.is_authenticated
    assert ci.authorization is None
    assert ci.id != admit(given, [("X-API-Key", "key-of-ops")]).id
    assert given.withheld == {"authorization", "x-api-key"}


@pytest.mark.parametrize(
    "headers",
    [
        (),
        [("X-API-Key", "wrong")],
        [("X-API-Key", KEYS["ci"])],
        [("Authorization", "key-of-ci")],
        [("X-API-Key", "k" * 5000)],
    ],
)
def test_who_has_no_key_does_not_get_in(headers: Headers) -> None:
    """Ours: also not with the hash of one."""
    with pytest.raises(Unauthorized):
        door(mode="api_key", api_keys=KEYS).admit(request(headers))


@pytest.mark.parametrize("key", ["key-of-ci", "key-of-ops", "wrong"])
def test_every_key_is_compared_in_constant_time_whichever_fits(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """Issue: constant-time. What can be pinned is that each hash is compared, and by what."""
    compared: list[bytes] = []

    def compare(known: bytes, given: bytes) -> bool:
        compared.append(known)
        return known == given

    monkeypatch.setattr("gateway.edge.doors.hmac.compare_digest", compare)
    given = door(mode="api_key", api_keys=KEYS)
    with contextlib.suppress(Unauthorized):
        given.admit(request([("X-API-Key", key)]))
    assert sorted(compared) == sorted(bytes.fromhex(known) for known in KEYS.values())


def test_two_different_keys_are_refused_and_one_key_twice_is_not() -> None:
    """Ours: who would it be?"""
    given = door(mode="api_key", api_keys=KEYS)
    same = [("X-API-Key", "key-of-ci"), ("Authorization", "Bearer key-of-ci")]
    assert admit(given, same).is_authenticated
    with pytest.raises(InvalidRequest):
        given.admit(request([("X-API-Key", "key-of-ci"), ("Authorization", "Bearer key-of-ops")]))


# --- header -------------------------------------------------------------------------------------

MESH = {"mode": "header", "trusted_peers": ["10.0.0.0/8", "::1"]}


@pytest.mark.parametrize("peer", ["10.1.2.3", "::1", "::ffff:10.1.2.3"])
def test_the_mesh_is_believed(peer: str) -> None:
    """Issue: identity set by a mesh or ingress."""
    given = door(**MESH)
    ann = admit(given, [("X-Forwarded-User", "ann"), ("Authorization", "Bearer x")], peer)
    assert ann.is_authenticated
    assert ann.authorization is None
    assert ann.id != admit(given, [("X-Forwarded-User", "bob")], peer).id


@pytest.mark.parametrize("peer", ["192.0.2.1", "::2", "11.0.0.1", "unix", "::ffff:192.0.2.1"])
def test_nobody_else_is_whatever_they_say(peer: str) -> None:
    """Issue: only from trusted peers; never trusted from anyone else."""
    with pytest.raises(Forbidden):
        door(**MESH).admit(request([("X-Forwarded-User", "ann")], peer))


def test_a_trusted_peer_must_say_who_and_only_once() -> None:
    """Issue: duplicate identity headers refused."""
    with pytest.raises(Unauthorized):
        door(**MESH).admit(request())
    with pytest.raises(InvalidRequest):
        door(**MESH).admit(request([("X-Forwarded-User", "ann"), ("x-forwarded-user", "bob")]))


@pytest.mark.parametrize(
    ("header", "found"),
    [("Bearer x", "x"), ("bearer  x ", "x"), ("Bearer ", None), ("Bearerx", None), ("", None), (None, None)],
)
def test_bearer_credentials_are_found(header: str | None, found: str | None) -> None:
    """RFC 9110, 11.1: the scheme is case-insensitive."""
    assert bearer_in(header) == found
