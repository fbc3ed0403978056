import pytest

from tests.support.peers import LegacyServers, Running


@pytest.fixture(params=["py-1.30", "ts-1.32"])
def newest(request: pytest.FixtureRequest, legacy_servers: LegacyServers) -> Running:
    """The newest legacy server of either language."""
    return legacy_servers.get(request.param)
