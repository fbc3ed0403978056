"""The order in which test files begin names files that there are."""

from tests.support.order import LONGEST, ROOT


def test_every_file_that_is_to_begin_first_is_there_once() -> None:
    """Ours: a file that was moved would begin late again, and nobody would notice."""
    assert [file for file in LONGEST if not (ROOT / file).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)
