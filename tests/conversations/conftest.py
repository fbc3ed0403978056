import pytest

from tests.support.peers import LegacyServers, Running
from tests.support.redis import own_redis_server, redis_server

__all__ = ["newest", "own_redis_server", "redis_server"]


@pytest.fixture(params=["py-1.30", "ts-1.32"])
def newest(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> Running:
    """The newest legacy server of either language."""
    return legacy_servers.get(request.param)
