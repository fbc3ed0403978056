"""Challenges and addresses: what a client is told so that it can come back with a credential."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.edge.challenges import Addresses, bearer, readdressed

ROOT = "/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("addresses", "host", "resource", "metadata"),
    [
        (Addresses("/mcp"), "h:1", "http://h:1/mcp", f"http://h:1{ROOT}/mcp"),
        (Addresses("/mcp", scheme="https"), "[::1]:1", "https://[::1]:1/mcp", f"https://[::1]:1{ROOT}/mcp"),
        (Addresses("/", "https://m.example"), "h", "https://m.example", f"https://m.example{ROOT}"),
        (
            Addresses("/a/mcp", "https://m.example/gate/"),
            "h",
            "https://m.example/gate/a/mcp",
            f"https://m.example{ROOT}/gate/a/mcp",
        ),
    ],
)
def test_the_well_known_path_goes_before_the_endpoint_s_own(
    addresses: Addresses, host: str, resource: str, metadata: str
) -> None:
    """RFC 9728, 3.1."""
    assert addresses.resource(host) == resource
    assert addresses.metadata(host) == metadata
    assert ROOT + ("" if addresses.path == "/" else addresses.path) in addresses.metadata_paths()


@given(st.one_of(st.none(), st.text()))
def test_a_host_that_is_none_builds_no_url(host: str | None) -> None:
    """Ours: what a client writes into Host never breaks out of the quotes of a header."""
    challenge = bearer(metadata=Addresses("/mcp").metadata(host))
    assert challenge.count('"') == 2
    assert challenge.isprintable()
    assert " " not in challenge.removeprefix("Bearer ")


def test_a_challenge_is_as_short_as_it_can_be() -> None:
    """RFC 6750, 3."""
    assert bearer() == "Bearer"
    assert bearer(error="invalid_token", scopes=["a", "b"]) == 'Bearer error="invalid_token", scope="a b"'


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ('Bearer resource_metadata="http://up/x", scope="a"', 'Bearer resource_metadata="OWN", scope="a"'),
        ("Bearer Resource_Metadata=http://up/x, a=b", 'Bearer Resource_Metadata="OWN", a=b'),
        ('Bearer resource_metadata="http://other/x"', 'Bearer resource_metadata="http://other/x"'),
        ('Basic realm="up"', 'Basic realm="up"'),
    ],
)
def test_only_the_upstream_s_own_address_is_changed(theirs: str, ours: str) -> None:
    """Ours: everything else is in the upstream's own words."""
    assert readdressed(theirs, "OWN", lambda url: url.startswith("http://up/")) == ours
