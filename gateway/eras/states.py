r"""Where an exchange stands, and what leads from one place to the next. The deciding is in `exchange`.

ClientCalled                       UpstreamAnswered / Failed / Broke
IDLE -----------------------------> CALLING -----------------------------------> DONE
\                                  ^  |  UpstreamAsked                          ^
\ (asks were open on the          |  v                                         |
\ session before the call)       | SETTLING --- SettleElapsed ---> HELD ------+
\                               |                                  |  HoldExpired
+--> GATED --- SettleElapsed --+<------------ ClientRetried ------+

RoundPaused leads from CALLING and SETTLING to HELD as well, with or without questions.
UpstreamBroke leads from there to BROKEN where the call was lost on its way; RerunJudged on to CALLING, or DONE.
"""

from enum import Enum, auto
from typing import Final


class State(Enum):
    """Where an exchange stands."""

    IDLE = auto()
    GATED = auto()
    CALLING = auto()
    SETTLING = auto()
    HELD = auto()
    BROKEN = auto()
    DONE = auto()


WORKING: Final = (State.GATED, State.CALLING, State.SETTLING, State.BROKEN)
"""A client of the running round listens, and the server is to get on with it."""
