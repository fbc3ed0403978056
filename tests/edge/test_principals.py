"""Who is calling: kept apart by what they proved, and never known by it."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.principals import NOBODY, by_claims, by_credential, by_header, by_key, ownership
from gateway.sealing.keyring import Key

NAMES = Key(b"s" * 32).principal


def test_nobody_in_particular_is_not_authenticated_and_has_nothing_to_show() -> None:
    """Ours: `auth: none` forwards no credential, whatever a client sends."""
    assert not NOBODY.is_authenticated
    assert NOBODY.authorization is None


def test_callers_are_as_different_as_their_credentials() -> None:
    """Ours: the principal decides about sessions, holds and tickets."""
    ann, bob = by_credential(NAMES, "Bearer ann"), by_credential(NAMES, "Bearer bob")
    assert ann.id != bob.id
    assert ann.id == by_credential(NAMES, "Bearer ann").id
    assert ann.authorization == "Bearer ann"


def test_a_principal_shows_nothing_of_its_credential() -> None:
    """House rule: no secrets in logs; and the id is keyed, so it cannot be looked up elsewhere."""
    principal = by_credential(NAMES, "Bearer hunter2")
    assert "hunter2" not in repr(principal)
    assert principal.id != by_credential(Key(b"t" * 32).principal, "Bearer hunter2").id


def test_a_refreshed_token_is_the_same_caller_and_shows_the_new_credential() -> None:
    """Issue: principal = hash of verified claims, so that a refreshed token keeps its holds."""
    before = by_claims(NAMES, "https://issuer", "ann", "Bearer old")
    after = by_claims(NAMES, "https://issuer", "ann", "Bearer new")
    assert (before.id, before.material) == (after.id, after.material)
    assert after.authorization == "Bearer new"


@given(st.lists(st.tuples(st.text(), st.text()), unique=True, min_size=2, max_size=5))
def test_two_subjects_are_never_one(claims: list[tuple[str, str]]) -> None:
    """Ours: whatever characters an issuer puts into its names."""
    found = {by_claims(NAMES, issuer, subject, None).material for issuer, subject in claims}
    assert len(found) == len(claims)


@given(st.text(min_size=1))
def test_one_name_proved_in_two_ways_is_two_callers(name: str) -> None:
    """Ours: a change of `auth.mode` hands nobody's holds to somebody else of that name."""
    ways = [by_key(NAMES, name, None), by_header(NAMES, name, None), by_claims(NAMES, "", name, None)]
    assert len({way.material for way in ways}) == len({ownership(way) for way in ways}) == 3
