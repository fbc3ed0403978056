"""The store of several replicas: Redis. It knows keys and times, and nothing of what an exchange or a letter says.

    holdfast:heart:<replica>    1                          for as long as the heart-beat promises
    holdfast:owner:<exchange>   <fence> <stage> <replica>  for as long as the hold may last
    holdfast:inbox:<replica>    a stream of letters        until nobody has written for a minute

Every key has a time to live, so nothing is left of a replica that was killed.
What compares and then writes is a script: Redis runs it whole, or not at all.
Nothing is sent twice by itself unless sending it twice means the same.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, TypeAlias, TypeVar

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError, RedisError, ResponseError

from gateway.settings.store_url import StoreUrl
from gateway.stores.protocol import MOST_LETTERS, InboxFull, Owner, StoreUnavailable
from gateway.telemetry.logs import get_logger
from gateway.telemetry.names import LogEvent

T = TypeVar("T")
Argument: TypeAlias = bytes | str | int

_RECORD: Final = """
local known = redis.call('GET', KEYS[1])
local fence, stage = '1', ARGV[2]
if known then
  local reached, owner
  fence, reached, owner = string.match(known, '^(%d+) (%d+) (.*)$')
  if owner ~= ARGV[1] then return 0 end
  if tonumber(reached) > tonumber(stage) then stage = reached end
end
redis.call('SET', KEYS[1], fence .. ' ' .. stage .. ' ' .. ARGV[1], 'PX', ARGV[3])
return 1
"""
_TAKE_OVER: Final = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
"""
_FORGET: Final = """
local known = redis.call('GET', KEYS[1])
if known and string.match(known, '^%d+ %d+ (.*)$') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""
# Refused when full, and not cut at the old end: a letter that was taken is a letter that can be read.
_POST: Final = """
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('XADD', KEYS[1], '*', 'letter', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""

_BATCH: Final = 64
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0


class _Way(Enum):
    """How it is reached; each may be broken on its own."""

    ASK = auto()
    READ = auto()
    """Of an inbox, which has its own connection."""
    WRITE = auto()
    """Refused by a server that was reached; only a beat proves the contrary."""


@dataclass(frozen=True, slots=True)
class Times:
    """What a store of several replicas waits for, in seconds."""

    operation: float = 2.0
    """Any single operation, connecting included."""
    block: float = 1.0
    """How long Redis itself keeps a reader of an empty inbox waiting."""
    inbox: float = 60.0
    """How long an inbox stays after the last letter into it."""


class RedisStore:
    """The same directory for all who give the same address and prefix."""

    is_shared = True

    def __init__(
        self,
        url: StoreUrl,
        *,
        prefix: str = "holdfast:",
        connections: int = 32,
        most_letters: int = MOST_LETTERS,
        times: Times = Times(),
    ) -> None:
        self._shown = str(url)
        self._prefix = prefix
        self._most_letters = most_letters
        self._times = times
        self._redis = _client(url, connections, times.operation)
        # A reader of an empty inbox occupies its connection; it has one for itself, which may be silent longer.
        self._reader = _client(url, 1, times.operation + times.block)
        self._record = self._redis.register_script(_RECORD)
        self._take_over = self._redis.register_script(_TAKE_OVER)
        self._forget = self._redis.register_script(_FORGET)
        self._post = self._redis.register_script(_POST)
        self._log = get_logger().bind(store=self._shown)
        self._is_available = False
        self._broken: set[_Way] = set()
        """What went wrong and was not done since. One way says nothing of the others: one that is full, or only a
        copy, can still be read, and one that has no connection left for us may have given us one before."""
        self._steady_since = math.inf
        self._promised: dict[str, float] = {}
        """Until when the hearts that this process keeps must be there, if nothing was lost."""

    def __repr__(self) -> str:
        return f"RedisStore({self._shown})"

    async def start(self) -> None:
        """Look whether it is there."""
        try:
            await self._again(self._redis.ping)
        except StoreUnavailable:
            return  # it was logged, and it is tried again with every operation

    async def close(self) -> None:
        """Disconnect."""
        for client in (self._redis, self._reader):
            await client.aclose(close_connection_pool=True)

    def is_available(self) -> bool:
        """Did the last operation of each kind reach it?"""
        return self._is_available

    def steady_seconds(self) -> float:
        """How long it has been there without losing anything, as far as can be seen from here."""
        return max(0.0, _now() - self._steady_since) if self._is_available else 0.0

    # --- who is alive ------------------------------------------------------------

    async def beat(self, replica: str, seconds: float) -> None:
        """Renew the heart, and notice if it was gone before its time: then so is everything else."""
        before = await self._again(
            lambda: self._redis.set(self._heart(replica), "1", px=_milliseconds(seconds), get=True)
        )
        # The one operation that always writes. A script that finds nothing to do succeeds also where nothing can be.
        self._found(_Way.WRITE)
        if before is None and _now() < self._promised.get(replica, 0.0):
            self._log.warning(LogEvent.STORE_EMPTIED)
            self._steady_since = _now()
        # Half of it, because the two clocks need not start together.
        self._promised[replica] = _now() + seconds / 2

    async def is_alive(self, replica: str) -> bool:
        """Is its heart there?"""
        return bool(await self._again(lambda: self._redis.exists(self._heart(replica))))

    async def leave(self, replica: str) -> None:
        """Remove its heart."""
        self._promised.pop(replica, None)
        await self._again(lambda: self._redis.delete(self._heart(replica)))

    # --- who owns what -----------------------------------------------------------

    async def record(self, exchange: str, replica: str, stage: int, seconds: float) -> bool:
        """Write the owner down, unless it is another by now."""
        args: list[Argument] = [replica, stage, _milliseconds(seconds)]
        return bool(await self._again(lambda: self._record(keys=[self._owner(exchange)], args=args)))

    async def owner(self, exchange: str) -> Owner | None:
        """Who has it."""
        known = await self._again(lambda: self._redis.get(self._owner(exchange)))
        if known is None:
            return None
        fence, stage, replica = known.decode().split(" ", 2)
        return Owner(replica, int(stage), int(fence))

    async def take_over(self, exchange: str, *, seen: Owner, replica: str, seconds: float) -> bool:
        """Change the owner if nobody else has. If the answer is lost, `owner` tells who it is now."""
        before = f"{seen.fence} {seen.stage} {seen.replica}"
        after = f"{seen.fence + 1} {seen.stage} {replica}"
        args: list[Argument] = [before, after, _milliseconds(seconds)]
        return bool(await self._once(lambda: self._take_over(keys=[self._owner(exchange)], args=args)))

    async def forget(self, exchange: str, replica: str) -> None:
        """Strike it out, if it is this replica's."""
        await self._again(lambda: self._forget(keys=[self._owner(exchange)], args=[replica]))

    # --- letters -----------------------------------------------------------------

    async def post(self, replica: str, letter: bytes) -> None:
        """At the end of its stream. If the answer is lost, so may be the letter, or not."""
        args: list[Argument] = [letter, self._most_letters, _milliseconds(self._times.inbox)]
        if not await self._once(lambda: self._post(keys=[self._inbox(replica)], args=args)):
            raise InboxFull(replica)

    async def inbox(self, replica: str) -> AsyncGenerator[bytes, None]:
        """From its stream, in order, each once: what was read is struck out with the next look.

        Always from the beginning: after a restart that forgot everything, ids may start below the last one seen.
        """
        read: list[bytes] = []
        pause = _FIRST_PAUSE
        while True:
            try:
                found = await self._look(self._inbox(replica), read)
            except StoreUnavailable:
                await asyncio.sleep(pause)
                pause = min(_LONGEST_PAUSE, pause * 2)
                continue
            pause = _FIRST_PAUSE
            read = [entry for entry, _ in found]
            for _, letter in found:
                yield letter

    async def _look(self, key: str, read: list[bytes]) -> list[tuple[bytes, bytes]]:
        # In this order on one connection: however much of it happens before an outage, nothing that was read
        # is found again, and nothing is struck out that was not read.
        pipeline = self._reader.pipeline(transaction=False)
        if read:
            pipeline.xdel(key, *read)
        # Without waiting for letters while it has to be found out whether there is anything to wait for.
        block = None if _Way.READ in self._broken else _milliseconds(self._times.block)
        pipeline.xread({key: "0-0"}, count=_BATCH, block=block)
        seconds = self._times.operation + self._times.block
        *_, streams = await self._reach(pipeline.execute, seconds, _Way.READ)
        return [(entry, fields[b"letter"]) for _, entries in streams for entry, fields in entries]

    # --- reaching it ---------------------------------------------------------------

    async def _again(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """For what may be done twice: a connection that a restart has broken is found out by using it."""
        try:
            return await self._reach(ask, self._times.operation)
        except _Disconnected:
            return await self._reach(ask, self._times.operation)

    async def _once(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        return await self._reach(ask, self._times.operation)

    async def _reach(self, ask: Callable[[], Awaitable[T]], seconds: float, way: _Way = _Way.ASK) -> T:
        try:
            async with asyncio.timeout(seconds):
                answer = await ask()
        except (RedisError, OSError) as error:
            self._lost(error, way)
            if isinstance(error, ReadOnlyError):
                # After a failover these connections lead to what is a copy now; new ones find the new original.
                await self._redis.connection_pool.disconnect(inuse_connections=False)
            kind = _Disconnected if isinstance(error, RedisConnectionError) else StoreUnavailable
            raise kind(type(error).__name__) from None
        self._found(way)
        return answer

    def _found(self, way: _Way) -> None:
        self._broken.discard(way)
        if not self._is_available and not self._broken:
            self._is_available = True
            self._steady_since = _now()
            self._log.info(LogEvent.STORE_FOUND)

    def _lost(self, error: Exception, way: _Way) -> None:
        if self._is_available or self._steady_since == math.inf:
            # The text of a library's error may quote what was sent; its kind tells enough.
            self._log.warning(LogEvent.STORE_LOST, reason=type(error).__name__)
        self._is_available = False
        # It was reached and did not do it.
        self._broken.add(_Way.WRITE if isinstance(error, ResponseError) else way)
        self._steady_since = 0.0

    def _heart(self, replica: str) -> str:
        return f"{self._prefix}heart:{replica}"

    def _owner(self, exchange: str) -> str:
        return f"{self._prefix}owner:{exchange}"

    def _inbox(self, replica: str) -> str:
        return f"{self._prefix}inbox:{replica}"


class _Disconnected(StoreUnavailable):
    """No connection: a new one may do better at once."""


def _client(url: StoreUrl, connections: int, seconds: float) -> Redis:
    pool = BlockingConnectionPool.from_url(
        url.get_secret_value(),
        max_connections=connections,
        timeout=seconds,
        # Every operation has its time from us. The library's own would go through `asyncio.wait_for`, which in
        # Python 3.11 may swallow a cancellation: then nothing that reads in a loop can be ended.
        socket_timeout=None,
        socket_connect_timeout=seconds,
        retry=Retry(NoBackoff(), 0),  # by default a letter would be posted again, and be there twice
        protocol=2,  # understood by every server and every proxy in between
        client_name="holdfast",
    )
    return Redis.from_pool(pool)


def _milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1000))


def _now() -> float:
    return asyncio.get_running_loop().time()
