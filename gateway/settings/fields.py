"""The values that the configuration is made of: durations, sizes, addresses. Knows no section."""

import re
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    SecretStr,
    WithJsonSchema,
    model_validator,
)

from gateway.settings.keys import decode_key
from gateway.settings.store_url import STORE_PATTERN, StoreUrl, check_store_url
from gateway.settings.units import (
    ADDRESS_PATTERN,
    DURATION_PATTERN,
    RATE_PATTERN,
    SIZE_PATTERN,
    Address,
    parse_address,
    parse_duration,
    parse_http_url,
    parse_rate,
    parse_size,
)

NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9-]*$"
_PATH: Final = re.compile(r"/|(/[A-Za-z0-9._~-]+)+", re.ASCII)
_ORIGIN: Final = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#\s@]+", re.ASCII)
_HOST: Final = re.compile(r"\*|\[[0-9A-Fa-f:.]+\](:\d{1,5})?|[^/?#\s@:]+(:\d{1,5})?", re.ASCII)
_K = TypeVar("_K", bound=str)
_T = TypeVar("_T")


def _more_than_nothing(seconds: float) -> float:
    if seconds <= 0:
        raise ValueError("should be longer than nothing")
    return seconds


def _a_beat(seconds: float) -> float:
    # Shorter, and a busy moment looks like death; longer, and clients wait for the dead.
    if not 0.1 <= seconds <= 30:
        raise ValueError("should be between 100ms and 30s")
    return seconds


def _no_truth_value(value: object) -> object:
    # YAML reads `yes` and `on` as true, and Python counts true as 1.
    if isinstance(value, bool):
        raise ValueError("should be a whole number")  # noqa: TRY004 - pydantic collects ValueErrors only
    return value


def _absent_is_empty(value: object) -> object:
    # `keys:` with nothing behind it is how YAML writes an empty list as well as an absent one.
    return () if value is None else value


def _absent_is_no_names(value: object) -> object:
    return {} if value is None else value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _endpoint_path(path: str) -> str:
    if not _PATH.fullmatch(path):
        raise ValueError("should start with '/' and have only letters, digits and . _ ~ - between slashes")
    return path


def _origin(value: str) -> str:
    if not _ORIGIN.fullmatch(value):
        raise ValueError("should be an origin such as https://app.example.com (no path), or *")
    return value


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError("should be a host name, with or without :port, or *")
    return value


def _variable_name(value: str) -> str:
    if not value or "=" in value or "\0" in value:
        raise ValueError("should be the name of an environment variable")
    return value


def _strong_key(value: SecretStr) -> SecretStr:
    decode_key(value.get_secret_value())
    return value


def _file_uri(value: str) -> str:
    if not value.startswith("file://"):
        raise ValueError("should be a file:// URI")
    return value


REFERENCE_SCHEMA: Final[dict[str, Any]] = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"}
_DURATION_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": DURATION_PATTERN},
        REFERENCE_SCHEMA,
    ]
}
_SIZE_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": SIZE_PATTERN},
        REFERENCE_SCHEMA,
    ]
}

Duration: TypeAlias = Annotated[float, PlainValidator(parse_duration), WithJsonSchema(_DURATION_SCHEMA)]
"""Seconds. Zero is allowed and means none."""
PositiveDuration: TypeAlias = Annotated[Duration, AfterValidator(_more_than_nothing)]
Size: TypeAlias = Annotated[int, PlainValidator(parse_size), WithJsonSchema(_SIZE_SCHEMA)]
"""Bytes."""
Frequency: TypeAlias = Annotated[
    float,
    PlainValidator(parse_rate),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": RATE_PATTERN}, REFERENCE_SCHEMA]}),
]
"""Times per second."""
Count: TypeAlias = Annotated[int, Field(ge=0), BeforeValidator(_no_truth_value)]
PositiveCount: TypeAlias = Annotated[int, Field(ge=1), BeforeValidator(_no_truth_value)]
ListenAddress: TypeAlias = Annotated[
    Address,
    PlainValidator(parse_address),
    PlainSerializer(str),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": ADDRESS_PATTERN}, REFERENCE_SCHEMA]}),
]
HttpUrl: TypeAlias = Annotated[
    str, PlainValidator(parse_http_url), WithJsonSchema({"type": "string", "format": "uri"})
]
StoreAddress: TypeAlias = Annotated[
    StoreUrl,
    AfterValidator(check_store_url),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": STORE_PATTERN}, REFERENCE_SCHEMA]}),
]
Name: TypeAlias = Annotated[str, Field(pattern=NAME_PATTERN)]
VariableName: TypeAlias = Annotated[str, AfterValidator(_variable_name)]
Listed: TypeAlias = Annotated[tuple[_T, ...], BeforeValidator(_absent_is_empty)]
Named: TypeAlias = Annotated[dict[_K, _T], BeforeValidator(_absent_is_no_names)]
EndpointPath: TypeAlias = Annotated[str, AfterValidator(_endpoint_path)]
Origin: TypeAlias = Annotated[str, AfterValidator(_origin)]
HostName: TypeAlias = Annotated[str, AfterValidator(_host)]
FileUri: TypeAlias = Annotated[str, AfterValidator(_file_uri)]
StrongKey: TypeAlias = Annotated[SecretStr, AfterValidator(_strong_key)]
Beat: TypeAlias = Annotated[PositiveDuration, AfterValidator(_a_beat)]
Level: TypeAlias = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)]
Replay: TypeAlias = Literal["never", "idempotent", "always"]


class Section(BaseModel):
    """Immutable, and unforgiving of misspelt keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _absent_is_default(cls, value: object) -> object:
        # `sealing:` with only comments below it is a section left at its defaults.
        return {} if value is None else value
