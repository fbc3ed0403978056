"""Secrets in, keys out, and never a secret out."""

import base64
import copy
import pickle
import random
import traceback

import pytest
from cryptography.exceptions import InvalidTag
from hypothesis import given
from hypothesis import strategies as st

from gateway.sealing.keyring import Key, Keyring

SECRET = bytes(range(100, 132))
OTHER = bytes(range(132, 164))

secrets = st.binary(min_size=32, max_size=80)


def url_text(secret: bytes) -> str:
    return base64.urlsafe_b64encode(secret).decode()


def test_a_refusal_names_the_place_and_not_the_secret() -> None:
    short = url_text(SECRET)[:30]

    with pytest.raises(ValueError, match=r"^sealing key 2: ") as caught:
        Keyring.from_secrets([url_text(SECRET), short])

    told = "".join(traceback.format_exception(caught.value)).replace(__file__, "")
    assert short not in told
    assert url_text(SECRET) not in told


def test_a_short_secret_makes_no_key() -> None:
    with pytest.raises(ValueError, match=r"at least 32 bytes, this one has 31$"):
        Key(SECRET[:31])


def test_a_key_is_the_same_in_every_process() -> None:
    """Pinned: a change here makes all tickets of running deployments worthless."""
    key = Key(SECRET)

    assert key.id == "27feff14"
    assert key.fingerprint(b"Bearer x") == "78a02ce48824fbc066b4ebf3756e7714244f392405c301988e85ca9298030ad3"
    assert key.seal(bytes(12), b"plain", b"bound").hex() == "ec7129023b8b7b1128efc86a489dafd4f3de81909e"


def test_the_id_is_the_mark_in_hex_and_no_part_of_the_secret() -> None:
    key = Key(SECRET)

    assert key.mark.hex() == key.id
    assert len(key.mark) == 4
    assert key.mark not in SECRET


def test_what_one_key_sealed_only_that_key_opens() -> None:
    key, other = Key(SECRET), Key(OTHER)
    sealed = key.seal(bytes(12), b"plain", b"bound")

    assert key.open(bytes(12), sealed, b"bound") == b"plain"
    with pytest.raises(InvalidTag):
        other.open(bytes(12), sealed, b"bound")
    with pytest.raises(InvalidTag):
        key.open(bytes(12), sealed, b"other")


@given(st.binary(), st.binary())
def test_fingerprints_are_equal_only_for_equal_material_under_the_same_key(one: bytes, two: bytes) -> None:
    key = Key(SECRET)

    assert (key.fingerprint(one) == key.fingerprint(two)) is (one == two)
    assert key.fingerprint(one) == Key(SECRET).fingerprint(one)
    assert key.fingerprint(one) != Key(OTHER).fingerprint(one)


def test_the_first_key_seals_and_all_are_found() -> None:
    ring = Keyring.from_secrets([url_text(OTHER), SECRET.hex()])

    assert [key.id for key in ring.keys] == [Key(OTHER).id, Key(SECRET).id]
    assert ring.first is ring.keys[0]
    assert ring.find(Key(SECRET).mark) is ring.keys[1]
    assert ring.find(b"none") is None


def test_a_ring_without_keys_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one key"):
        Keyring([])


def test_the_same_secret_twice_is_refused_however_it_is_written() -> None:
    with pytest.raises(ValueError, match=r"^sealing key 2 \([0-9a-f]{8}\) is in the ring already$"):
        Keyring.from_secrets([url_text(SECRET), SECRET.hex()])


def test_ephemeral_rings_are_made_of_the_chance_they_are_given() -> None:
    one, same, other = (Keyring.ephemeral(random.Random(seed).randbytes) for seed in (1, 1, 2))

    assert one.first.id == same.first.id != other.first.id


def test_a_key_shows_nothing_but_its_id() -> None:
    key = Key(SECRET)
    ring = Keyring([key])

    assert repr(key) == str(key) == f"Key(id='{key.id}')"
    assert repr(ring) == str(ring) == f"Keyring(ids=['{key.id}'])"
    assert f"{key}{ring}" == str(key) + str(ring)
    assert not hasattr(key, "__dict__")


def test_a_key_is_neither_copied_nor_pickled() -> None:
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="not copied or pickled"):
            attempt(Key(SECRET))


# --- turned ------------------------------------------------------------------------------------


def test_a_ring_is_turned_at_once_and_as_a_whole() -> None:
    """Issue: rotation while running; whoever has the ring has the new keys."""
    old, new = Key(SECRET), Key(OTHER)
    ring = Keyring([old])
    ring.turn([new, old])
    assert ring.first is new
    assert ring.find(old.mark) is old
    ring.turn([new])
    assert ring.find(old.mark) is None


@pytest.mark.parametrize("keys", [[], [Key(OTHER), Key(OTHER)]])
def test_what_is_no_ring_changes_nothing(keys: list[Key]) -> None:
    """Ours: a rotation that went wrong must not cost what is held."""
    old = Key(SECRET)
    ring = Keyring([old])
    with pytest.raises(ValueError, match="ring"):
        ring.turn(keys)
    assert ring.keys == (old,)


def test_a_name_is_the_same_wherever_the_secret_is_and_nothing_else_derived_from_it() -> None:
    """Issue: principals agree across replicas and restarts; own label."""
    assert Key(SECRET).principal(b"ann") == Key(SECRET).principal(b"ann")
    assert Key(SECRET).principal(b"ann") != Key(SECRET).principal(b"bob")
    assert Key(SECRET).principal(b"ann") != Key(OTHER).principal(b"ann")
    assert Key(SECRET).principal(b"ann") not in Key(SECRET).fingerprint(b"ann")
