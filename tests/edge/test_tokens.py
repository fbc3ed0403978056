"""Bearer tokens: pinned issuer, audience and algorithms; nothing in a token decides how it is verified."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from gateway.edge.jwks import Jwks, parse
from gateway.edge.tokens import MOST_CHARACTERS, KeyUnknown, TokenRefused, Verifier
from gateway.settings.auth import Jwt
from tests.support.issuer import Issuer, new_key, rsa_issuer

ISSUER = Issuer()
SETTINGS: dict[str, Any] = {"issuer": ISSUER.url, "jwks_url": f"{ISSUER.url}/jwks"}


class Clock:
    """Time as the test says."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


def verifier(issuer: Issuer = ISSUER, clock: Clock = CLOCK, **settings: Any) -> Verifier:
    checked = Jwt.model_validate({**SETTINGS, **settings})
    jwks = Jwks(checked, now=clock)
    jwks.keys = parse(json.dumps(issuer.jwks()).encode())
    return Verifier(checked, jwks, audience=["crm", "https://h/mcp"], now=clock)


def good(**claims: Any) -> dict[str, Any]:
    return {"iat": CLOCK.now, "exp": CLOCK.now + 300, **claims}


@pytest.mark.requirement("R47")
def test_a_good_token_says_who_and_what_for() -> None:
    """Issue: issuer, audience, algorithms pinned; principal from issuer and subject."""
    verified = verifier().verify(ISSUER.token(**good(scope="read write", scp=["admin"])))
    assert (verified.issuer, verified.subject) == (ISSUER.url, "ann")
    assert verified.scopes == {"read", "write", "admin"}


@pytest.mark.parametrize("audience", ["crm", ["other", "crm"], "https://h/mcp"])
def test_one_of_several_audiences_is_enough(audience: object) -> None:
    """RFC 7519, 4.1.3."""
    assert verifier().verify(ISSUER.token(**good(aud=audience))).subject == "ann"


@pytest.mark.requirement("R47")
@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"aud": "other"}, "another audience"),
        ({"aud": ["crm2"]}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": {"crm": 1}}, "another audience"),
        ({"iss": "https://issuer.example/"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"exp": None}, "never expires"),
        ({"exp": CLOCK.now - 31}, "expired"),
        ({"exp": "tomorrow"}, "no time"),
        ({"exp": True}, "no time"),
        ({"exp": 10**400}, "no time"),
        ({"nbf": CLOCK.now + 31}, "not valid yet"),
        ({"iat": CLOCK.now + 31}, "not valid yet"),
        ({"sub": None}, "names nobody"),
        ({"sub": ""}, "names nobody"),
        ({"sub": 7}, "names nobody"),
    ],
)
def test_a_token_that_says_the_wrong_thing_is_refused(claims: dict[str, Any], why: str) -> None:
    """Specification, authorization: tokens MUST be validated, and be for us."""
    with pytest.raises(TokenRefused, match=why):
        verifier().verify(ISSUER.token(**{**good(), **claims}))


def test_clocks_may_be_a_little_off() -> None:
    """Ours: `leeway`."""
    clock = Clock()
    token = ISSUER.token(exp=clock.now - 29, nbf=clock.now + 29, iat=clock.now + 29)
    assert verifier(clock=clock).verify(token).subject == "ann"


def test_a_token_is_not_remembered_longer_than_it_is_good() -> None:
    """Ours: verified tokens are remembered, which must not show."""
    clock = Clock()
    looked_at = verifier(clock=clock)
    token = ISSUER.token(iat=clock.now, exp=clock.now + 10)
    looked_at.verify(token)
    clock.now += 41
    with pytest.raises(TokenRefused, match="expired"):
        looked_at.verify(token)


def test_a_token_is_not_remembered_longer_than_its_key() -> None:
    """Ours: a key that the issuer has withdrawn signs nobody in."""
    looked_at = verifier()
    token = ISSUER.token(**good())
    looked_at.verify(token)
    looked_at._jwks.keys, looked_at._jwks.generation = [], 1
    with pytest.raises(KeyUnknown):
        looked_at.verify(token)


def _forged(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


CLAIMS = {"iss": ISSUER.url, "aud": "crm", "sub": "ann", "exp": CLOCK.now + 300}


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "HS256", "HS512", "", "RS1"])
def test_no_signature_and_a_shared_secret_are_never_accepted(algorithm: str) -> None:
    """Issue: never `none`, never HS* with a JWKS."""
    with pytest.raises(TokenRefused, match="algorithm"):
        verifier().verify(_forged({"alg": algorithm, "kid": "first"}, CLAIMS))


def test_the_public_key_is_no_shared_secret() -> None:
    """RFC 8725, 2.1: signing with HMAC under what everybody can read."""
    public = ISSUER.key.as_pem(private=False)
    token = jwt.encode(
        {"alg": "HS256", "kid": "first"}, CLAIMS, OctKey.import_key(public.hex()), algorithms=["HS256"]
    )
    with pytest.raises(TokenRefused, match="algorithm"):
        verifier().verify(token)


def test_a_token_does_not_bring_its_own_key() -> None:
    """RFC 8725, 3.10: `jwk`, `jku` and `x5u` in a header are not followed."""
    mallory = new_key("first")
    header = {"jwk": mallory.as_dict(private=False), "jku": "https://mallory.example/jwks"}
    with pytest.raises(TokenRefused):
        verifier().verify(ISSUER.token(key=mallory, header=header, **good()))


def test_another_s_signature_does_not_verify() -> None:
    """Ours: the same key id is not the same key."""
    with pytest.raises(TokenRefused, match="signature"):
        verifier().verify(ISSUER.token(key=new_key("first"), **good()))


def test_an_unknown_key_is_told_apart_because_the_issuer_may_have_a_new_one() -> None:
    """Issue: refreshed on unknown kid."""
    with pytest.raises(KeyUnknown):
        verifier().verify(ISSUER.token(key=new_key("second"), **good()))


def test_an_algorithm_that_is_not_configured_is_refused_whatever_the_keys_say() -> None:
    """Issue: algorithms pinned."""
    issuer = rsa_issuer()
    assert verifier(issuer).verify(issuer.token(**good())).subject == "ann"
    with pytest.raises(TokenRefused, match="algorithm"):
        verifier(issuer, algorithms=["ES256"]).verify(issuer.token(**good()))


def test_edwards_curves_are_verified_under_their_name() -> None:
    """RFC 9864: `Ed25519`, fully specified."""
    issuer = Issuer(key=OKPKey.generate_key("Ed25519", {"kid": "ed"}, private=True))
    assert verifier(issuer, algorithms=["Ed25519"]).verify(issuer.token(**good())).subject == "ann"


def test_a_token_without_a_key_id_is_tried_with_the_keys_that_fit() -> None:
    """RFC 7515, 4.1.4: `kid` is optional."""
    issuer = Issuer(published=[new_key("other"), ISSUER.key])
    token = ISSUER.token(header={"kid": None}, **good())
    assert verifier(issuer).verify(token).subject == "ann"


UNFIT: dict[str, ECKey | OKPKey | RSAKey] = {
    "another curve": ECKey.generate_key("P-384", {"kid": "first"}),
    "another kind": RSAKey.generate_key(2048, {"kid": "first"}),
    "another algorithm": ECKey.generate_key("P-256", {"kid": "first", "alg": "ES384"}),
    "another use": ECKey.generate_key("P-256", {"kid": "first", "key_ops": ["deriveKey"]}),
}


@pytest.mark.parametrize("unfit", UNFIT)
@pytest.mark.parametrize("kid", [None, "first"])
def test_keys_that_cannot_verify_it_do_not_stand_in_the_way(unfit: str, kid: str | None) -> None:
    """RFC 7517, 4.5: keys of one set may share a name if their kinds differ; a set may hold keys of all kinds."""
    issuer = Issuer(published=[UNFIT[unfit], ISSUER.key])
    token = ISSUER.token(header={"kid": kid}, **good())
    assert verifier(issuer).verify(token).subject == "ann"


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
def test_a_key_for_agreement_does_not_stand_before_one_for_signatures() -> None:
    """RFC 8037: X25519 and Ed25519 are both OKP."""
    signing = OKPKey.generate_key("Ed25519", {"kid": "ed"})
    issuer = Issuer(key=signing, published=[OKPKey.generate_key("X25519", {"kid": "x"}), signing])
    token = issuer.token(header={"kid": None, "alg": "EdDSA"}, **good())
    assert verifier(issuer).verify(token).subject == "ann"


def test_without_a_key_id_any_key_may_be_a_new_one() -> None:
    """Ours: an issuer that names no keys turns them too."""
    with pytest.raises(KeyUnknown):
        verifier().verify(ISSUER.token(key=new_key("second"), header={"kid": None}, **good()))


@pytest.mark.parametrize(
    "header",
    [
        {"pi.atm": "1"},
        {"nonce": "n", "x5t": "t"},
        {"signer": "arn:aws:…", "exp": 1, "iss": "https://other.example"},
        {"x5c": ["M" * 1500]},
    ],
)
def test_what_an_issuer_adds_to_a_header_is_passed_over(header: dict[str, Any]) -> None:
    """RFC 7515, section 4: what is not understood MUST be ignored. Entra ID and Ping write such headers."""
    assert verifier().verify(ISSUER.token(header=header, **good())).subject == "ann"


@pytest.mark.parametrize("critical", [["pi.atm"], ["exp"], "exp", [1]])
def test_what_must_be_understood_and_is_not_is_refused(critical: object) -> None:
    """RFC 7515, 4.1.11."""
    header = {"crit": critical, "pi.atm": "1", "exp": 1}
    start = base64.urlsafe_b64encode(json.dumps({"alg": "ES256", "kid": "first", **header}).encode())
    token = ISSUER.token(**good())
    with pytest.raises(TokenRefused, match="cannot be read"):
        verifier().verify(f"{start.decode().rstrip('=')}.{token.partition('.')[2]}")


def test_another_claim_may_name_the_caller() -> None:
    """Issue: configurable claim."""
    token = ISSUER.token(**good(email="ann@example.com"))
    assert verifier(principal="email").verify(token).subject == "ann@example.com"


@given(
    st.one_of(st.text(max_size=60), st.from_regex(r"[\w-]{0,20}\.[\w-]{0,20}\.[\w-]{0,20}", fullmatch=True))
)
def test_what_is_no_token_is_refused_and_nothing_worse(text: str) -> None:
    """Ours: bad input gets a clear error."""
    with pytest.raises(TokenRefused):
        verifier().verify(text)


@given(st.integers(0, 400), st.sampled_from("Aa0-_.=+ "))
def test_a_changed_token_is_refused(place: int, letter: str) -> None:
    """Ours: wherever it was changed."""
    token = ISSUER.token(**good())
    place %= token.rindex(".") + 1
    changed = token[:place] + letter + token[place + 1 :]
    if changed != token:
        with pytest.raises(TokenRefused):
            verifier().verify(changed)


@pytest.mark.parametrize(
    "header",
    [[], "x", {"alg": 1}, {"kid": "first"}, {"alg": "ES256", "kid": 1}, {"alg": "ES256", "kid": None}],
)
def test_a_malformed_header_is_refused(header: Any) -> None:
    """Ours: types are not believed."""
    with pytest.raises(TokenRefused):
        verifier().verify(_forged(header, CLAIMS))


def test_a_huge_token_is_not_even_read() -> None:
    """Ours: bounded work."""
    with pytest.raises(TokenRefused, match="no signed token"):
        verifier().verify(ISSUER.token(**good(filler="x" * MOST_CHARACTERS)))


def test_a_refusal_quotes_nothing() -> None:
    """House rule: no credential in a log."""
    token = ISSUER.token(**good(aud="hunter2"))
    with pytest.raises(TokenRefused) as refusal:
        verifier().verify(token)
    assert "hunter2" not in str(refusal.value)
