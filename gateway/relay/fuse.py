"""Opens sessions through a breaker: a server that cannot be reached is not tried again for every call.

Calls that are held, and whatever else has its session already, never come here.
"""

from collections.abc import Awaitable, Callable

from gateway.errors import GatewayError, Overloaded, UpstreamDown, UpstreamTimedOut, UpstreamUnreachable
from gateway.telemetry.logs import get_logger
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.names import LogEvent
from gateway.upstreams.breaker import Breaker, Circuit
from gateway.upstreams.pool import Caller
from gateway.upstreams.session import Session


class Fuse:
    """In front of whatever opens the sessions of one upstream."""

    def __init__(
        self, name: str, breaker: Breaker, open_for: Callable[[Caller], Awaitable[Session]], metrics: Metrics
    ) -> None:
        self._name = name
        self._breaker = breaker
        self._open_for = open_for
        self._metrics = metrics
        self._log = get_logger().bind(upstream=name)

    async def open(self, caller: Caller) -> Session:
        """A session. Raises as what is behind it, and `UpstreamDown` without asking that."""
        seconds = self._breaker.admit()
        if seconds is not None:
            raise UpstreamDown(f"not tried for {seconds:.1f} s more", seconds=seconds)
        before = self._breaker.circuit
        try:
            session = await self._open_for(caller)
        except (UpstreamUnreachable, UpstreamTimedOut):
            self._breaker.failed()
            raise
        except Overloaded:
            self._breaker.gave_up()  # of our own want: nothing is known of the server
            raise
        except GatewayError:
            self._breaker.reached()  # to say no is to be there
            raise
        except BaseException:
            self._breaker.gave_up()
            raise
        else:
            self._breaker.reached()
            return session
        finally:
            self._tell(before)

    def _tell(self, before: Circuit) -> None:
        circuit = self._breaker.circuit
        self._metrics.circuit(self._name, is_open=circuit is not Circuit.CLOSED)
        if circuit is Circuit.OPEN and before is Circuit.CLOSED:
            self._log.warning(LogEvent.CIRCUIT_OPENED)
        elif circuit is Circuit.CLOSED and before is not Circuit.CLOSED:
            self._log.info(LogEvent.CIRCUIT_CLOSED)
