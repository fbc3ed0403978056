"""How an exchange ends, as its client will hear it. Pure; when one has ended is decided elsewhere."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.eras.reruns import is_error
from gateway.eras.vocabulary import Abort, Complete, CompleteFailure, Ending
from gateway.errors import CapabilityMissing, GatewayError, UpstreamLost, UpstreamUnreachable
from gateway.wire.jsonrpc import Failure, Raw

PAGE_NOT_OPENED: Final = CompleteFailure(
    Failure(None, -32603, "The user did not open the page that the server asked for", None)
)


def judged(result: Raw, needs: Mapping[str, Any]) -> Ending:
    """The call's result. A tool that failed after a question of its was refused failed for want of that capability."""
    return lacking(needs) if needs and is_error(result) else Complete(result)


def begun(error: GatewayError) -> GatewayError:
    """Why an answer was not taken, as the end of its call: that it could not be sent proves nothing of the call."""
    return UpstreamLost(str(error)) if isinstance(error, UpstreamUnreachable) else error


def lacking(needs: Mapping[str, Any]) -> Abort:
    """The client did not declare what was needed."""
    return Abort(CapabilityMissing(dict(needs)))
