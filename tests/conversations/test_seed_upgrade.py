"""Seeds, rolling upgrade: the new version of a tool asks for something else, and the user is asked only for that."""

from tests.support.gateways import Gateways
from tests.support.scripted import Json, Scripted, Turn, text_result
from tests.support.wire import Wire, accept

OLD = ("github_login", "google_login")
NEW = ("github_login", "microsoft_login")
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def login(number: int, key: str) -> Json:
    """A question that says itself what it is called."""
    params = {
        "message": f"Please log in: {key}",
        "requestedSchema": SCHEMA,
        "_meta": {"dev.holdfast/inputKey": key},
    }
    return {"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": params}


class Logins(Scripted):
    """A tool that wants two logins at once; which, depends on its version."""

    wanted: tuple[str, ...] = OLD

    def __post_init__(self) -> None:
        super().__post_init__()
        self.on["tools/call"] = self._call

    async def _call(self, turn: Turn) -> None:
        await turn.stream()
        numbers = [self.number("ask") for _ in self.wanted]
        for number, key in zip(numbers, self.wanted, strict=True):
            await turn.event(login(number, key))
        given = []
        for number in numbers:
            answer = await turn.answered(number)
            if answer is None:
                return
            given.append(answer["result"]["content"]["name"])
        await turn.event(turn.answer(text_result(" ".join(given))))
        await turn.finish()


async def test_only_the_new_question_reaches_the_user_after_an_upgrade(gateway: Gateways) -> None:
    """Seeds: the known answer is used, the new question is put, the answer that nobody wants any more is dropped."""
    async with Logins() as server:
        served = await gateway(server.url, replay="always", sessions={"warm": 0}, settle="200ms")
        async with Wire(served.url) as wire:
            first = await wire.tool("echo")
            assert set(first.asked) == set(OLD)
            await server.stop()
            server.wanted = NEW
            await server.start()
            second = await wire.retry(first, {key: accept(name=f"ann@{key}") for key in OLD})
            assert list(second.asked) == ["microsoft_login"]
            done = await wire.retry(second, {"microsoft_login": accept(name="ann@microsoft_login")})
        assert done.text == "ann@github_login ann@microsoft_login"
        assert len(server.seen("tools/call")) == 2
        told = [turn.message["result"]["content"]["name"] for turn in server.seen("answer")]
        assert sorted(told) == ["ann@github_login", "ann@microsoft_login"]
