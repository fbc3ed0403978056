"""The judge that reads along does read, and objects."""

import pytest

from gateway.edge import reply
from gateway.relay.listener import Reply, RpcError
from gateway.telemetry.names import Outcome
from tests.support import judged
from tests.support.gateways import Gateways
from tests.support.scripted import Scripted
from tests.support.wire import Wire


async def test_what_a_gateway_sends_is_read(gateway: Gateways) -> None:
    async with Scripted() as server:
        served = await gateway(server.url, sessions={"warm": 0})
        before = judged.judged
        async with Wire(served.url) as wire:
            await wire.request("tools/list")
            await wire.request("ping")

    assert judged.judged == before + 2


@pytest.mark.parametrize("code", [-32002, -32042, -32050])
def test_a_forbidden_code_is_objected_to(code: int) -> None:
    judged.install()

    reply.body_of(Reply(Outcome.ERROR, error=RpcError(code, "no")), 7)

    with pytest.raises(AssertionError, match="not valid in 2026-07-28"):
        judged.complain()
    judged.complain()  # once is enough


def test_a_result_that_does_not_say_what_it_is_is_objected_to() -> None:
    judged.install()

    token = judged.ANSWERED.set("tools/call")
    reply.body_of(Reply(Outcome.COMPLETE, result={"content": []}), 7)
    judged.ANSWERED.reset(token)

    with pytest.raises(AssertionError, match="not valid in 2026-07-28"):
        judged.complain()
