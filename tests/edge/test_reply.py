"""One round on the wire: JSON if the reply is the first thing, else a stream that ends with it."""

import json

import pytest
from aiohttp import ClientSession, web

from gateway.edge.front import Front
from gateway.edge.reply import body_of, json_response, write_round
from gateway.eras.notifications import PROGRESS, RoundFilter
from gateway.errors import BodyTooSlow, Overloaded
from gateway.relay.listener import Listener, Reply
from gateway.settings.model import Limits
from gateway.telemetry.names import Outcome, Rung
from gateway.wire.jsonrpc import Notification, encode
from tests.support.asking import raw

DONE = Reply(Outcome.COMPLETE, result={"resultType": "complete", "content": []})


def listening() -> Listener:
    return Listener(RoundFilter("theirs", None), rung=Rung.FIRST)


def progress(amount: int) -> Notification:
    return Notification(PROGRESS, raw({"progressToken": "ours", "progress": amount}))


async def answered(listener: Listener, keepalive: float = 5.0) -> tuple[int, str, str]:
    """Status, media type and body of the round that this listener hears."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response, reply = await write_round(request, listener, 7, keepalive)
        assert reply.outcome
        return response

    runner = Front({"/mcp": handle}, Limits(body=64)).runner()
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        async with ClientSession() as http, http.post(url) as response:
            return response.status, response.content_type, await response.text()
    finally:
        await runner.cleanup()


async def test_a_reply_that_comes_first_is_json_with_its_own_status() -> None:
    done, shed = listening(), listening()
    done.finish(DONE)
    shed.finish(Reply.of(Overloaded("full")))

    status, kind, body = await answered(done)
    assert (status, kind, json.loads(body)["id"]) == (200, "application/json", 7)
    status, kind, _ = await answered(shed)
    assert (status, kind) == (503, "application/json")


@pytest.mark.requirement("R29", "R31")
async def test_notifications_come_before_the_reply_and_none_after_it() -> None:
    listener = listening()
    listener.tell(progress(1))
    listener.tell(progress(1))  # does not increase
    listener.tell(progress(2))
    listener.finish(DONE)
    listener.tell(progress(3))  # too late

    status, kind, body = await answered(listener)
    messages = [json.loads(line[6:]) for line in body.split("\n") if line.startswith("data: ")]
    assert (status, kind) == (200, "text/event-stream")
    assert [message["params"]["progress"] for message in messages[:-1]] == [1, 2]
    assert {message["params"]["progressToken"] for message in messages[:-1]} == {"theirs"}
    assert messages[-1] == json.loads(body_of(DONE, 7))


@pytest.mark.parametrize("request_id", [0, "", -1, 2**70, "\u2028"])
def test_an_id_is_written_as_it_was_read(request_id: int | str) -> None:
    assert json.loads(body_of(DONE, request_id))["id"] == request_id
    assert encode(request_id) in body_of(Reply.of(Overloaded()), request_id)


def test_a_refusal_that_ends_the_connection_ends_it() -> None:
    assert json_response(Reply.of(BodyTooSlow()), None).keep_alive is False
    assert json_response(DONE, 1).keep_alive is not False
