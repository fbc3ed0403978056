"""`holdfast`, and all that it sends to modern clients is judged as it is sent; see `judged.py`.

    JUDGED_TO=FILE python -m tests.support.judged_serve serve --config FILE

The file gets a line for each message that was read: `JUDGED`, or what is wrong with it.
"""

import os
import sys
from pathlib import Path
from typing import TextIO

from tests.support import judged
from tests.support.serving import JUDGED, NOTES


def _take_notes(notes: TextIO) -> None:
    judge = judged.judge

    def judge_and_note(data: bytes) -> None:
        wrong: list[str] = []
        judged.tell = wrong.append
        judge(data)
        print(*(repr(words) for words in wrong or [JUDGED]), sep="\n", file=notes, flush=True)

    judged.judge = judge_and_note


if __name__ == "__main__":
    judged.install()
    with Path(os.environ.pop(NOTES)).open("a", encoding="utf-8") as notes:
        _take_notes(notes)
        from gateway.cli import main

        sys.exit(main())
