"""The reference server "everything" as published: what its releases call things, and who fills in their forms."""

from dataclasses import dataclass
from typing import Any

from tests.support.person import Person

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Release:
    """What differs between the releases."""

    kind: str
    elicit: str
    sample: str
    roots: str
    sum: str
    form: Json
    """An answer to its form."""
    told: str
    """What it says of that answer."""
    conditional: frozenset[str]
    """Tools that exist only for clients that declare something."""


RELEASES = (
    Release(
        "everything-2025.9.25",
        "startElicitation",
        "sampleLLM",
        "listRoots",
        "add",
        {"color": "teal", "number": 7, "pets": "birds"},
        "- Color: teal",
        frozenset({"startElicitation", "listRoots"}),
    ),
    Release(
        "everything-2026.8.31",
        "trigger-elicitation-request",
        "trigger-sampling-request",
        "get-roots-list",
        "get-sum",
        {"name": "Ann", "check": True, "number": 2.5, "untitledMultipleSelectEnum": ["Piano", "Bass"]},
        "- Name: Ann",
        frozenset(
            {
                "trigger-elicitation-request",
                "trigger-sampling-request",
                "trigger-url-elicitation",
                "get-roots-list",
            }
        ),
    ),
)


class Visitor(Person):
    """Fills in whichever form this release shows."""

    def __init__(self, form: Json) -> None:
        super().__init__()
        self.form = form

    def _filled(self, params: Json) -> Json:
        assert self.form.keys() <= params["requestedSchema"]["properties"].keys()
        return self.form
