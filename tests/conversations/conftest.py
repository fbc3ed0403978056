import pytest

from tests.support.peers import LegacyServers, Running
from tests.support.redis import redis_server

__all__ = ["newest", "redis_server"]


@pytest.fixture(params=["py-1.30", "ts-1.32"])
def newest(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> Running:
    """The newest legacy server of either language."""
    return legacy_servers.get(request.param)
