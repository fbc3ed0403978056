"""Progress and logs in mid-call: who hears what, under which token."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.eras.notifications import LOG, PROGRESS, RoundFilter, is_of_call
from gateway.wire.jsonrpc import Id, Notification, Raw, decode, encode
from gateway.wire.versions import LOG_LEVELS
from tests.support.asking import raw

ODD = Raw(b"1e999")


def progress(value: Any, **more: Any) -> Notification:
    return Notification(PROGRESS, raw({"progressToken": "hf-1", "progress": value} | more))


def log(level: Any, **more: Any) -> Notification:
    return Notification(LOG, raw({"level": level, "data": "text"} | more))


def heard(filter_: RoundFilter, notification: Notification) -> Any:
    params = filter_.admit(notification)
    return None if params is None else decode(encode(params))


# --- progress -----------------------------------------------------------------------------------------


@pytest.mark.requirement("R31")
@pytest.mark.parametrize("token", ["t", 7, 0, ""])
def test_progress_goes_out_under_the_clients_own_token(token: Id) -> None:
    """Spec-mandated. TypeScript clients begin with token 0, so a token is never tested for truth."""
    told = heard(RoundFilter(token, None), progress(0, total=9, message="half way"))

    assert told == {"progressToken": token, "progress": 0, "total": 9, "message": "half way"}
    assert type(told["progressToken"]) is type(token)


@pytest.mark.requirement("R31")
def test_without_a_token_there_is_no_progress() -> None:
    assert heard(RoundFilter(None, "debug"), progress(1)) is None


@pytest.mark.requirement("R31")
def test_progress_only_ever_increases() -> None:
    filter_ = RoundFilter("t", None)

    passed = [value for value in (0, 1, 1, 0.5, 1.5, -3, 2) if heard(filter_, progress(value))]
    assert passed == [0, 1, 1.5, 2]


@pytest.mark.requirement("R38")
def test_a_new_round_begins_anew_under_its_own_token() -> None:
    first, second = RoundFilter("t1", None), RoundFilter("t2", None)
    heard(first, progress(5))

    assert heard(second, progress(2)) == {"progressToken": "t2", "progress": 2}


@pytest.mark.parametrize("value", [None, True, "1", [], ODD, Raw(b"1" + b"0" * 400)])
def test_progress_that_is_no_number_is_not_passed_on(value: Any) -> None:
    filter_ = RoundFilter("t", None)
    assert heard(filter_, progress(value)) is None
    assert heard(filter_, progress(1)) == {"progressToken": "t", "progress": 1}
    assert heard(RoundFilter("t", None), Notification(PROGRESS, {})) is None


def test_members_that_are_null_are_left_out() -> None:
    """Modern clients refuse a null where a number or a text may be."""
    assert heard(RoundFilter("t", None), progress(1, total=None, message=None)) == {
        "progressToken": "t",
        "progress": 1,
    }


def test_progress_of_another_call_is_not_this_calls() -> None:
    """Ours: Python 1.12 sends progress on the standing stream, where it may come after the call's result."""
    assert is_of_call(progress(1), "hf-1")
    assert not is_of_call(progress(1), "hf-2")
    assert not is_of_call(progress(1), None)
    assert not is_of_call(progress(1, progressToken=ODD), "hf-1")


def test_what_names_no_call_could_be_of_any() -> None:
    assert is_of_call(log("info"), "hf-1")
    assert is_of_call(Notification(PROGRESS, raw({"progress": 1})), "hf-1")


# --- logs -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("R32")
@pytest.mark.parametrize("wanted", LOG_LEVELS)
def test_logs_are_heard_at_the_level_that_was_asked_for_and_above(wanted: str) -> None:
    filter_ = RoundFilter("t", wanted)

    passed = [level for level in LOG_LEVELS if heard(filter_, log(level)) is not None]
    assert passed == list(LOG_LEVELS[LOG_LEVELS.index(wanted) :])


@pytest.mark.requirement("R32")
def test_without_a_level_there_are_no_logs() -> None:
    assert heard(RoundFilter("t", None), log("emergency")) is None


def test_a_log_is_passed_on_as_the_very_bytes_it_came_in() -> None:
    notification = log("error", logger="db", data={"n": 1.50})

    assert RoundFilter(None, "debug").admit(notification) == notification.params


@pytest.mark.parametrize("name", ["logger", "_meta"])
@pytest.mark.parametrize("odd", [None, 7, True, ["x"]])
def test_a_log_is_passed_on_without_what_no_client_could_read(name: str, odd: Any) -> None:
    """Ours: for one wrong member a strict client does not hear of the whole message."""
    notification = Notification(LOG, raw({"level": "error", "data": None, name: odd}))

    assert heard(RoundFilter(None, "debug"), notification) == {"level": "error", "data": None}


@pytest.mark.parametrize("name", ["total", "message", "_meta"])
@pytest.mark.parametrize("odd", [None, ODD, True, ["x"]])
def test_progress_is_passed_on_without_what_no_client_could_read(name: str, odd: Any) -> None:
    notification = progress(1.5, **{name: odd})

    assert heard(RoundFilter("t", None), notification) == {"progress": 1.5, "progressToken": "t"}


def test_progress_beyond_all_numbers_is_none() -> None:
    filter_ = RoundFilter("t", None)

    assert heard(filter_, progress(10**400)) is None
    assert heard(filter_, progress(1)) == {"progress": 1, "progressToken": "t"}


@pytest.mark.parametrize("level", [None, 7, "loud", ["error"], {}, ODD])
def test_a_log_of_no_known_level_is_not_passed_on(level: Any) -> None:
    assert heard(RoundFilter(None, "debug"), log(level)) is None


def test_a_log_without_data_is_not_passed_on() -> None:
    assert heard(RoundFilter(None, "debug"), Notification(LOG, raw({"level": "error"}))) is None


# --- the rest ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("R29")
@pytest.mark.parametrize(
    "method",
    [
        "notifications/cancelled",
        "notifications/tools/list_changed",
        "notifications/elicitation/complete",
        "x",
    ],
)
def test_nothing_else_is_passed_on(method: str) -> None:
    assert heard(RoundFilter("t", "debug"), Notification(method, raw({"level": "error", "data": 1}))) is None


json = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.just(ODD)
)


@given(
    st.sampled_from([PROGRESS, LOG]),
    st.dictionaries(st.sampled_from(["progress", "progressToken", "level", "data"]), json),
)
def test_no_notification_however_odd_brings_us_down(method: str, params: dict[str, Any]) -> None:
    notification = Notification(method, raw(params))

    is_of_call(notification, "hf-1")
    RoundFilter("t", "debug").admit(notification)
