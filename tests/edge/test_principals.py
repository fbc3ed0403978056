"""Who is calling: kept apart by credential, and never known by it."""

import pytest

from gateway.edge.principals import Doorkeeper


def test_without_authentication_everybody_is_nobody_and_nothing_goes_upstream() -> None:
    """Ours: `auth: none` forwards no credential, whatever a client sends."""
    nobody = Doorkeeper("none", b"s" * 32).admit("Bearer secret")
    assert not nobody.is_authenticated
    assert nobody.authorization is None


def test_callers_are_as_different_as_their_credentials() -> None:
    """Ours: the principal decides about sessions, holds and tickets."""
    doorkeeper = Doorkeeper("passthrough", b"s" * 32)
    ann, bob = doorkeeper.admit("Bearer ann"), doorkeeper.admit("Bearer bob")
    assert ann.id != bob.id
    assert ann.id == doorkeeper.admit("Bearer ann").id
    assert ann.authorization == "Bearer ann"


@pytest.mark.parametrize("given", [None, ""])
def test_a_caller_without_a_credential_is_nobody(given: str | None) -> None:
    """Ours: whether that is good enough is the upstream's to say."""
    assert not Doorkeeper("passthrough", b"s" * 32).admit(given).is_authenticated


def test_a_principal_shows_nothing_of_its_credential() -> None:
    """House rule: no secrets in logs; and the id is keyed, so it cannot be looked up elsewhere."""
    principal = Doorkeeper("passthrough", b"s" * 32).admit("Bearer hunter2")
    assert "hunter2" not in repr(principal)
    assert principal.id != Doorkeeper("passthrough", b"t" * 32).admit("Bearer hunter2").id
