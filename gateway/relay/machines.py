"""Makes the state machine (`eras.exchange`) for a call from settings and session. It drives nothing."""

from gateway.eras.exchange import Exchange
from gateway.eras.reruns import Past
from gateway.relay.place import Place
from gateway.relay.request import ClientRequest
from gateway.upstreams.session import Session


def new_exchange(
    place: Place, request: ClientRequest, session: Session, past: Past | None = None
) -> Exchange:
    """The machine for a call on this session; `past` is what an earlier run of the call was told."""
    early, session.early_asks = session.early_asks, []
    return Exchange(
        place.policy,
        place.naming(request.target),
        early=early,
        known_roots=place.roots.recall(request.principal.id),
        may_rerun=past is not None,
        past=past,
    )
