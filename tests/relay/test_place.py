"""What the exchanges of one upstream share."""

from typing import Any

import pytest

from gateway.app import Gateway
from gateway.eras.policy import AskPolicy, Disposition, Unfit
from gateway.relay import place as module
from gateway.relay.place import Ids, Place, RootsMemory, policy_of
from gateway.settings.model import Settings
from gateway.settings.upstream import Upstream
from tests.support.asking import ROOTS, form, roots


def upstream(**settings: Any) -> Upstream:
    return Upstream.model_validate({"url": "http://127.0.0.1:9/mcp"} | settings)


# --- ids -------------------------------------------------------------------------------------------------


def test_ids_are_never_used_twice_by_whatever_process() -> None:
    """Ours: the event stores of real servers know a stream by the request id alone, over all sessions."""
    one, other = Ids("replica1"), Ids("replica2")
    made = [ids.next() for ids in (one, other) for _ in range(100)]

    assert len(set(made)) == 200
    assert all(isinstance(id_, str) for id_ in made)


def test_two_upstreams_of_one_process_never_use_the_same_id() -> None:
    """Ours: replicas know an exchange by its id alone; the end of one must not be taken for that of another."""
    upstreams = {name: {"url": f"http://127.0.0.1:9/{name}"} for name in ("one", "two")}
    gateway = Gateway(Settings.model_validate({"listen": "127.0.0.1:0", "upstreams": upstreams}))
    one, two = gateway._relays.values()

    assert one._place.ids.next() != two._place.ids.next()


# --- roots -------------------------------------------------------------------------------------------------


class Memory:
    def __init__(self, ttl: float = 60) -> None:
        self.now = 1000.0
        self.roots = RootsMemory(ttl, lambda: self.now)


def test_roots_are_remembered_for_a_while() -> None:
    memory = Memory(ttl=60)
    memory.roots.remember("ada", ROOTS)

    memory.now += 59
    assert memory.roots.recall("ada") == ROOTS
    memory.now += 1
    assert memory.roots.recall("ada") is None


def test_one_principals_roots_are_nobody_elses() -> None:
    memory = Memory()
    memory.roots.remember("ada", ROOTS)

    assert memory.roots.recall("bob") is None


def test_the_newest_roots_count() -> None:
    memory = Memory()
    memory.roots.remember("ada", ROOTS)
    memory.roots.remember("ada", {"roots": []})

    assert memory.roots.recall("ada") == {"roots": []}


def test_an_answer_that_is_too_long_is_not_kept_nor_the_one_before() -> None:
    memory = Memory()
    memory.roots.remember("ada", ROOTS)
    memory.roots.remember("ada", {"roots": [{"uri": "file:///" + "x" * 16 * 1024}]})

    assert memory.roots.recall("ada") is None


def test_no_more_are_remembered_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_REMEMBERED", 2)
    memory = Memory()
    for principal in ("ada", "bob", "ada", "eve"):
        memory.roots.remember(principal, ROOTS)

    assert [memory.roots.recall(name) is not None for name in ("ada", "bob", "eve")] == [True, False, True]


# --- configuration -------------------------------------------------------------------------------------------


def test_without_configuration_all_is_relayed_and_what_does_not_fit_asked_again() -> None:
    assert policy_of(upstream()) == AskPolicy(static_roots=[])


def test_the_configurations_words_are_the_machines() -> None:
    asks = {
        "elicitation": "decline",
        "sampling": "decline",
        "roots": "static",
        "static_roots": [{"uri": "file:///srv"}, {"uri": "file:///home", "name": "Home"}],
        "invalid": "forward",
    }

    assert policy_of(upstream(asks=asks)) == AskPolicy(
        elicitation=Disposition.DECLINE,
        sampling=Disposition.DECLINE,
        roots=Disposition.STATIC,
        static_roots=[{"uri": "file:///srv"}, {"uri": "file:///home", "name": "Home"}],
        unfit=Unfit.FORWARD,
    )


def test_a_tools_questions_have_the_names_that_were_configured_for_it() -> None:
    settings = upstream(
        input_keys={"update_work_item": ["resolution", "duplicate_of"]}, key_hint="example.com/key"
    )
    unused: Any = None
    place = Place(
        name="crm",
        settings=settings,
        policy=policy_of(settings),
        hold_seconds=1,
        pool=unused,
        tickets=unused,
        ids=Ids("r"),
        roots=Memory().roots,
        metrics=unused,
        ledger=unused,
        directory=unused,
    )

    naming = place.naming("update_work_item")
    assert naming.name(form(0, "x"), position=1, taken=()) == "duplicate_of"
    assert naming.name(form(0, "x", _meta={"example.com/key": "own"}), position=1, taken=()) == "own"
    assert place.naming("another").name(form(0, "x"), position=0, taken=()) == "x"
    assert place.naming("another").name(roots(0), position=0, taken=()) == "roots-1"
