"""The configuration as JSON Schema, for editors and other people's checks. Describes, decides nothing."""

import json

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from gateway.settings.fields import REFERENCE_SCHEMA
from gateway.settings.model import Settings


def document() -> str:
    """Return the schema as the text of `config/holdfast.schema.json`."""
    return (
        json.dumps(Settings.model_json_schema(schema_generator=_Generator), indent=2, ensure_ascii=False)
        + "\n"
    )


class _Generator(GenerateJsonSchema):
    """Where a number or a word is wanted, the file may also have `${NAME}`: the loader puts the value in."""

    def generate(self, schema: CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        made = super().generate(schema, mode)
        made.pop("title", None)
        return {"$schema": self.schema_dialect, "title": "Holdfast configuration", **made}

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - the signature is pydantic's
        # "Call Timeout" tells nobody more than `call_timeout`.
        return False

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return {"anyOf": [super().int_schema(schema), dict(REFERENCE_SCHEMA)]}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return {"anyOf": [super().literal_schema(schema), dict(REFERENCE_SCHEMA)]}
