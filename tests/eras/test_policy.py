"""Which asks reach the client, and what the others are told."""

from typing import Any

import pytest

from gateway.eras.policy import (
    AskPolicy,
    Disposition,
    Undeclared,
    settle_without_client,
    withdrawn,
)
from gateway.eras.vocabulary import Ask, SendAnswer, SendRefusal
from tests.support.asking import (
    CANCEL,
    DECLINE,
    EVERYTHING,
    ROOTS,
    ask,
    form,
    in_short,
    page,
    roots,
    sampling,
)

RELAY = AskPolicy()
DECLINING = AskPolicy(
    elicitation=Disposition.DECLINE, sampling=Disposition.DECLINE, roots=Disposition.DECLINE
)
STATIC = AskPolicy(roots=Disposition.STATIC, static_roots=ROOTS["roots"])


def settle(one: Ask, policy: AskPolicy = RELAY, can: Any = EVERYTHING, known: Any = None) -> Any:
    """What the ask is told, in few words."""
    match settle_without_client(one, policy, can, known):
        case SendAnswer() | SendRefusal() as told:
            return in_short(told)
        case other:
            return other


@pytest.mark.parametrize("one", [form(0, "a"), page(0), sampling(0), roots(0)])
def test_what_the_client_declared_is_relayed(one: Ask) -> None:
    assert settle(one) is None


@pytest.mark.requirement("R35")
@pytest.mark.parametrize(
    ("one", "can", "needs"),
    [
        (form(0, "a"), {}, {"elicitation": {"form": {}}}),
        (page(0), {"elicitation": {}}, {"elicitation": {"url": {}}}),
        (form(0, "a"), {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        (sampling(0), {"roots": {}}, {"sampling": {}}),
        (sampling(0, tools=[]), {"sampling": {}}, {"sampling": {"tools": {}}}),
        (roots(0), {"sampling": {}}, {"roots": {}}),
    ],
)
def test_what_the_client_did_not_declare_is_refused_and_the_need_remembered(
    one: Ask, can: Any, needs: Any
) -> None:
    told = settle(one, can=can)

    assert isinstance(told, Undeclared)
    assert (in_short(told.refusal), told.needs) == (("refuse", 0, -32601), needs)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (form(0, "a"), ("answer", 0, DECLINE)),
        (page(0), ("answer", 0, DECLINE)),
        (sampling(0), ("refuse", 0, -1)),
        (roots(0), ("refuse", 0, -32601)),
    ],
)
@pytest.mark.parametrize("can", [EVERYTHING, {}])
def test_policy_declines_without_a_client_and_without_a_need(one: Ask, told: Any, can: Any) -> None:
    assert settle(one, DECLINING, can) == told


@pytest.mark.parametrize("can", [EVERYTHING, {}])
def test_static_roots_need_no_client(can: Any) -> None:
    assert settle(roots(0), STATIC, can) == ("answer", 0, ROOTS)
    assert settle(form(0, "a"), STATIC) is None


def test_static_roots_are_advertised_for_clients_that_have_none() -> None:
    """Ours: a server asks only a client that says it has roots."""
    assert STATIC.advertised({"sampling": {}}) == {"sampling": {}, "roots": {}}
    assert RELAY.advertised({"sampling": {}}) == {"sampling": {}}
    assert DECLINING.advertised(EVERYTHING) == EVERYTHING


def test_roots_that_are_known_are_not_asked_for_again() -> None:
    assert settle(roots(0), known=ROOTS) == ("answer", 0, ROOTS)
    assert settle(sampling(0), known=ROOTS) is None


def test_roots_that_are_known_are_not_told_on_behalf_of_a_client_that_has_none() -> None:
    assert isinstance(settle(roots(0), can={}, known=ROOTS), Undeclared)


@pytest.mark.parametrize("can", [EVERYTHING, {}])
def test_what_no_client_could_show_is_refused_and_is_nobodys_need(can: Any) -> None:
    assert settle(ask(0, "elicitation/create", mode="url"), can=can) == ("refuse", 0, -32602)
    assert settle(ask(0, "sampling/createMessage"), can=can) == ("refuse", 0, -32602)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (form("", "a"), ("answer", "", CANCEL)),
        (page(0), ("answer", 0, CANCEL)),
        (sampling(0), ("refuse", 0, -1)),
        (roots(0), ("refuse", 0, -1)),
    ],
)
def test_an_ask_that_nobody_will_answer_is_cancelled_or_refused(one: Ask, told: Any) -> None:
    assert in_short(withdrawn(one, "too late")) == told
