from collections.abc import Iterator

import pytest

from tests.support.peers import LegacyServers


@pytest.fixture(scope="session")
def legacy_servers() -> Iterator[LegacyServers]:
    with LegacyServers() as servers:
        yield servers
