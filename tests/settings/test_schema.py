"""The published schema and the shipped examples say what the model says."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from gateway.settings.environment import fields_of, value_kind
from gateway.settings.load import load, sealing_secrets
from gateway.settings.model import Settings
from gateway.settings.schema import document

CONFIG = Path(__file__).parents[2] / "config"
FILES = sorted(CONFIG.glob("*.yaml"))
KEY = "5f" * 32


def _refuse(_: str) -> Any:
    raise AssertionError("the schema refers to nothing outside")


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema_rs.Draft202012Validator(json.loads(document()), retriever=_refuse)


def test_the_published_schema_is_current() -> None:
    """Mend with: holdfast schema > config/holdfast.schema.json."""
    assert (CONFIG / "holdfast.schema.json").read_text(encoding="utf-8") == document()


def test_there_are_three_examples() -> None:
    assert [file.name for file in FILES] == ["holdfast.example.yaml", "minimal.yaml", "sidecar.yaml"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_example_loads_and_fits_the_schema(file: Path, validator: Any) -> None:
    text = file.read_text(encoding="utf-8")
    environ = {"HOLDFAST_SEAL_KEY": KEY} if "${HOLDFAST_SEAL_KEY}" in text else {}
    settings = load(file, environ=environ)
    assert sealing_secrets(settings) == list(environ.values())
    assert [error.message for error in validator.iter_errors(yaml.safe_load(text))] == []


def test_the_full_example_names_every_setting_and_leaves_it_at_its_default() -> None:
    file = CONFIG / "holdfast.example.yaml"
    text = file.read_text(encoding="utf-8")
    missing = [name for name in _names(Settings) if not re.search(rf"^\s*(# )?{name}:", text, re.MULTILINE)]
    assert missing == ["uri", "name"], "these two are shown on one line, in the commented roots"
    assert "{uri: file:///srv/data, name: Data}" in text

    shown = load(file, environ={"HOLDFAST_SEAL_KEY": KEY})
    plain = Settings.model_validate({"upstreams": {"crm": {"url": "http://127.0.0.1:9000/mcp"}}})
    examples = {"path": "/crm/mcp", "input_keys": {"update_work_item": ("resolution", "duplicate_of")}}
    assert shown.upstreams["crm"] == plain.upstreams["crm"].model_copy(update=examples)
    for name in set(Settings.model_fields) - {"upstreams", "sealing", "admin"}:
        assert getattr(shown, name) == getattr(plain, name), name
    assert shown.sealing.ttl == plain.sealing.ttl


def _names(kind: Any) -> list[str]:
    inner = value_kind(kind)
    if inner is not None:
        return _names(inner)
    arguments = getattr(kind, "__args__", ())
    if arguments and arguments[-1] is Ellipsis:
        return _names(arguments[0])
    return [found for name, below in fields_of(kind).items() for found in (name, *_names(below))]


def test_every_setting_is_described() -> None:
    def undescribed(node: Any, place: str) -> list[str]:
        return [
            f"{place}.{name}"
            for name, schema in node.get("properties", {}).items()
            if "description" not in schema and "$ref" not in schema
        ]

    schema = json.loads(document())
    found = undescribed(schema, "")
    for name, node in schema["$defs"].items():
        assert "description" in node, name
        found += undescribed(node, name)
    assert found == []


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"upstreams": {}},
        {"upstreams": {"Bad_Name": {"url": "http://h"}}},
        {"upstreams": {"a": {}}},
        {"upstreams": {"a": {"url": "http://h", "command": ["server"]}}},
        {"upstreams": {"a": {"command": [""]}}},
        {"upstreams": {"a": {"url": "http://h", "transport": "websocket"}}},
        {"upstreams": {"a": {"url": "http://h", "settle": "soon"}}},
        {"upstreams": {"a": {"url": "http://h", "holds": {"max": 0}}}},
        {"upstreams": {"a": {"url": "http://h", "sessions": {"mode": "poled"}}}},
        {"upstreams": {"a": {"url": "http://h"}}, "listne": "h:1"},
        {"upstreams": {"a": {"url": "http://h"}}, "listen": "h"},
    ],
)
def test_what_the_loader_refuses_an_editor_marks(wrong: Any, validator: Any) -> None:
    assert not validator.is_valid(wrong)


def test_references_to_the_environment_fit_the_schema_wherever_they_may_stand(validator: Any) -> None:
    upstream = {"url": "${U}", "settle": "${S}", "holds": {"max": "${N}"}, "sessions": {"mode": "${M}"}}
    assert validator.is_valid(
        {
            "listen": "${H}:${P}",
            "limits": {"body": "${B}"},
            "log": {"level": "${L}"},
            "upstreams": {"a": upstream},
        }
    )
