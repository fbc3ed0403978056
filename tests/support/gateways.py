"""Starts gateways in the test's own process, in front of whichever upstream; stops all of them.

Every test loads this. The gateway is imported when one is wanted: tests of one room stay quick, and tell of
what is broken in that room only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.app import Gateway

UPSTREAM = "legacy"


@dataclass(frozen=True, slots=True)
class Served:
    """A gateway that listens."""

    gateway: "Gateway"
    url: str
    """The endpoint of its (first) upstream."""


@dataclass(slots=True)
class Gateways:
    """Call it to start one more gateway. The `gateway` fixture is one of these."""

    _started: "list[Gateway]" = field(default_factory=list)

    async def __call__(
        self, upstream_url: str, *, settings: Mapping[str, Any] | None = None, **upstream: Any
    ) -> Served:
        """Start a gateway on a free port; keywords go into the upstream's section, `settings` beside it."""
        return await self.start(
            {
                "listen": "127.0.0.1:0",
                "upstreams": {UPSTREAM: {"url": upstream_url, **upstream}},
                **(settings or {}),
            }
        )

    async def start(self, settings: Mapping[str, Any]) -> Served:
        """Start a gateway with these settings, whole."""
        from gateway.app import Gateway  # noqa: PLC0415
        from gateway.settings.model import Settings  # noqa: PLC0415
        from tests.support import judged  # noqa: PLC0415 - the models take a while to load

        judged.install()
        checked = Settings.model_validate(settings)
        gateway = Gateway(checked)
        self._started.append(gateway)
        await gateway.start()
        return Served(gateway, gateway.url(next(iter(checked.upstreams))))

    async def stop(self) -> None:
        """Stop all, newest first; fails if one of them ever said what is not valid."""
        has_served = bool(self._started)
        while self._started:
            await self._started.pop().stop()
        if has_served:
            from tests.support import judged  # noqa: PLC0415

            judged.complain()
