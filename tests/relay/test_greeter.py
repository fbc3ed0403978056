"""What operators see of handshakes that fail."""

import pytest

from gateway.errors import (
    GatewayError,
    UpstreamLost,
    UpstreamRefused,
    UpstreamSpokeNonsense,
    UpstreamTimedOut,
    UpstreamUnauthorized,
    UpstreamUnreachable,
)
from gateway.relay.greeter import outcome_of
from gateway.telemetry.names import HandshakeOutcome


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (UpstreamUnreachable("no route"), HandshakeOutcome.UNREACHABLE),
        (UpstreamTimedOut("initialize"), HandshakeOutcome.TIMED_OUT),
        (UpstreamUnauthorized(401), HandshakeOutcome.UNAUTHORIZED),
        (UpstreamSpokeNonsense("a web page"), HandshakeOutcome.PROTOCOL),
        (UpstreamLost("reset"), HandshakeOutcome.LOST),
        (UpstreamRefused(404), HandshakeOutcome.REFUSED),
    ],
)
def test_a_failed_handshake_is_counted_under_what_happened(
    error: GatewayError, outcome: HandshakeOutcome
) -> None:
    """Ours: a server that is down and one that says no are two different alarms."""
    assert outcome_of(error) is outcome
