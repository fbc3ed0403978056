"""What becomes of one upstream's exchanges when this process stops and others go on. It does not know when.

at work, its server remembers      the round ends with a ticket; whoever gets that reads on
at work, may be run again          the same, if it has not ended by itself when time runs short
held, its server remembers         given up here at once, found by its ticket elsewhere
held, may be run again             cancelled here, run again elsewhere
anything else                      stays, and is waited for: retries find it through the courier
"""

from gateway.eras.vocabulary import WorkTimedOut
from gateway.errors import CallLost
from gateway.relay.driver import Driver
from gateway.relay.place import Place
from gateway.relay.replays import ReplayPolicy


class HandOver:
    """The farewell of one upstream."""

    def __init__(self, place: Place, replays: ReplayPolicy) -> None:
        self._place = place
        self._replays = replays
        self._asked: set[Driver] = set()
        self.moved = 0
        """How many exchanges others can have."""

    def waiting(self) -> int:
        """How many exchanges still have something to wait for."""
        return sum(driver.is_at_work or not driver.is_hopeless for driver in self._place.drivers)

    async def go_round(self, *, is_late: bool) -> None:
        """Hand over what can be handed over now. `is_late`: what might still have ended by itself is, too."""
        if not self._place.directory.is_shared:
            return
        self._place.leaving.set()
        for driver in list(self._place.drivers):
            if _needs_policy(driver, is_late=is_late):
                await self._ask_policy(driver)
            if driver.is_at_work and driver.can_move:
                driver.pause()
            elif driver.is_away and await driver.hand_over():
                self.moved += 1

    def cut_short(self) -> None:
        """The time to wait is over: whoever still waits for the server hears so, and is not just cut off."""
        for driver in list(self._place.drivers):
            if driver.is_at_work:
                driver.hear(WorkTimedOut(CallLost("gateway_stopped")))

    async def _ask_policy(self, driver: Driver) -> None:
        """Ask once whether the call may run again: the answer does not change, and may have to come from the server."""
        if driver not in self._asked:
            self._asked.add(driver)
            driver.passport.may_run_again = await self._replays.allows(driver.request)


def _needs_policy(driver: Driver, *, is_late: bool) -> bool:
    """Does handing it over depend on policy? Asking may take long, so what can go anyway does not wait for it."""
    if driver.is_at_work:
        return is_late and not driver.can_move
    return driver.is_away and not driver.passport.leads_to_call
