"""The user behind a client of the tests: what is asked is noted, what is answered always fits."""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

NAME = "Ann"
MODEL_SAYS = "Paris"
ROOTS = ["file:///one", "file:///two"]
FORMS: tuple[Json, ...] = (
    {"first": "Ada"},
    {"last": "Lovelace"},
    {"name": NAME, "age": 42, "colour": "blue", "subscribe": True},
    {"resolution": "Duplicate"},
    {"duplicateOfId": 4301},
    {"name": NAME},
    {"value": NAME},
)
"""Each form is known by the properties it asks for."""


@dataclass(slots=True)
class Person:
    """Answers for itself, its model and its folders."""

    action: str = "accept"
    asked: list[tuple[str, Json]] = field(default_factory=list)

    def answer(self, method: str, params: Json) -> Json:
        """The answer to an embedded request."""
        self.asked.append((method, params))
        match method:
            case "elicitation/create" if self.action != "accept":
                return {"action": self.action}
            case "elicitation/create" if params.get("mode") == "url":
                return {"action": "accept"}
            case "elicitation/create":
                return {"action": "accept", "content": self._filled(params)}
            case "sampling/createMessage":
                content = {"type": "text", "text": MODEL_SAYS}
                return {"role": "assistant", "content": content, "model": "test-model"}
            case "roots/list":
                return {"roots": [{"uri": uri} for uri in ROOTS]}
            case _:
                raise AssertionError(f"asked {method}")

    @property
    def kinds(self) -> list[str]:
        """What was asked, by method, sorted."""
        return sorted(method for method, _ in self.asked)

    def _filled(self, params: Json) -> Json:
        wanted = params["requestedSchema"]["properties"].keys()
        return next(form for form in FORMS if form.keys() == wanted)


def plan_answers(action: str = "accept") -> Json:
    """The same person, for the TypeScript client; a form is found there by one of its properties."""
    forms = [{"match": _telling(form), "content": form, "action": action} for form in FORMS]
    return {
        "elicitation": [*forms, {"action": action}],
        "sampling": MODEL_SAYS,
        "roots": [{"uri": uri} for uri in ROOTS],
    }


def _telling(form: Json) -> str:
    return next((name for name in form if name != "name"), "name")
