"""A client that does not read its answer: what waits for it is bounded, then its connection is cut."""

import asyncio
import json
import socket

from aiohttp import web

from gateway.edge.front import Front
from gateway.edge.reply import write_round
from gateway.eras.notifications import PROGRESS, RoundFilter
from gateway.relay.listener import Listener, Reply
from gateway.settings.model import Limits
from gateway.telemetry.names import Outcome, Rung
from gateway.wire.jsonrpc import Notification
from tests.support.asking import raw

_BIG = "x" * 200_000


class Stalled:
    """A connection that sends a request and never reads."""

    def __init__(self, listener: Listener, patience: float) -> None:
        self._listener = listener
        self._patience = patience
        self.cut: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            response, _ = await write_round(request, self._listener, 1, 5.0, self._patience)
        except ConnectionError as error:
            self.cut.set_result(str(error))
            return web.Response(status=499)
        self.cut.set_result("answered")
        return response

    async def run(self) -> str:
        runner = Front({"/mcp": self.handle}, Limits(body=64)).runner()
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.setblocking(False)  # noqa: FBT003
                loop = asyncio.get_running_loop()
                await loop.sock_connect(client, ("127.0.0.1", runner.addresses[0][1]))
                await loop.sock_sendall(client, b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
                async with asyncio.timeout(10):
                    return await self.cut
        finally:
            await runner.cleanup()


def listening() -> Listener:
    return Listener(RoundFilter("t", "debug"), rung=Rung.FIRST)


def progress(amount: int, message: str) -> Notification:
    return Notification(PROGRESS, raw({"progressToken": "ours", "progress": amount, "message": message}))


async def test_a_stream_that_is_not_read_is_cut_after_a_deadline() -> None:
    """Ours: notifications are dropped first, the oldest ones; then the connection goes."""
    listener = listening()
    left: list[Listener] = []
    listener.joined(left.append)
    for number in range(1, 400):
        listener.tell(progress(number, _BIG))
    assert sum(map(len, listener._waiting)) <= 4 * 1024**2
    assert len(listener._waiting) <= 256

    feeding = asyncio.ensure_future(_feed(listener))
    assert await Stalled(listener, 0.2).run() == "the client does not read"
    feeding.cancel()
    await asyncio.gather(feeding, return_exceptions=True)


async def _feed(listener: Listener) -> None:
    """More than any buffer of the kernel takes."""
    for number in range(1000, 5000):
        listener.tell(progress(number, _BIG))
        await asyncio.sleep(0)


async def test_a_large_answer_that_is_not_read_is_cut_too_and_its_hold_stays() -> None:
    """Ours: the last word was said, so that leaving changes nothing about the exchange."""
    listener = listening()
    left: list[Listener] = []
    listener.joined(left.append)
    listener.finish(Reply(Outcome.INPUT_REQUIRED, result={"requestState": "x" * 30_000_000}))
    assert await Stalled(listener, 0.2).run() == "the client does not read"
    listener.left()
    assert left == []


async def test_a_large_answer_that_is_read_arrives_whole() -> None:
    """Ours: the deadline is for readers that do not read."""
    listener = listening()
    listener.finish(Reply(Outcome.COMPLETE, result={"resultType": "complete", "text": "x" * 3_000_000}))

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response, _ = await write_round(request, listener, 1, 5.0, 5.0)
        return response

    runner = Front({"/mcp": handle}, Limits(body=64)).runner()
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection("127.0.0.1", runner.addresses[0][1])
        writer.write(b"POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        async with asyncio.timeout(10):
            _, body = (await reader.read(-1)).split(b"\r\n\r\n", 1)
        writer.close()
        await writer.wait_closed()
        assert len(json.loads(body)["result"]["text"]) == 3_000_000
    finally:
        await runner.cleanup()
