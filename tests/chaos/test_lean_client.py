"""What the lean client takes for a whole response: half of one must never count as an answer."""

import pytest

from tests.chaos.lean_client import Broken, read_response

JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"


def test_a_whole_response_is_read() -> None:
    """RFC 9112: by its length, or chunk by chunk."""
    assert (read_response(JSON).status, read_response(JSON).body) == (200, b"{}")
    assert read_response(CHUNKED).body == b"abcde"


@pytest.mark.parametrize("whole", [JSON, CHUNKED], ids=["length", "chunked"])
def test_no_part_of_a_response_is_a_response(whole: bytes) -> None:
    """Ours: a gateway that is killed while it writes has not answered."""
    last = len(whole) - len(b"\r\n") if whole is CHUNKED else len(whole)
    for end in range(last):
        with pytest.raises(Broken):
            read_response(whole[:end])
