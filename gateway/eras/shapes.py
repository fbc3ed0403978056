"""What modern clients accept, as types, and how to mend what does not fit. It knows no method and no list.

Both modern SDKs throw away a whole result for one wrong member in it, often a
`null`. So each legacy object is held against its shape: a fitting one stays the
bytes it was; of the others only the wrong members are left out. Members that
the shape does not name are none of our business.
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

from msgspec import NODEFAULT, UNSET, DecodeError, Meta, Struct, UnsetType, field
from msgspec.json import Decoder
from msgspec.structs import fields

from gateway.eras.binaries import as_base64
from gateway.wire.jsonrpc import Raw, decode_members

T = TypeVar("T")

NULL: Final = Raw(b"null")

Whatever = dict[str, Raw] | UnsetType
Text = str | UnsetType
Flag = bool | UnsetType
Role = Literal["user", "assistant"]
_DAY: Final = (
    r"(\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))"
    r"|(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)
_TIME: Final = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"
Instant = Annotated[str, Meta(pattern=rf"(?a)^{_DAY}T{_TIME}\Z")]
"""ISO 8601: the TypeScript client refuses a day that is none, a date alone, and a time without seconds or zone."""
LARGEST_SAFE: Final = 2**53 - 1
Count = Annotated[int, Meta(ge=-LARGEST_SAFE, le=LARGEST_SAFE)]
"""An integer as every client can hold it: the TypeScript client refuses one that JavaScript would round."""


class Icon(Struct, rename="camel"):
    """One picture."""

    src: str
    mime_type: Text = UNSET
    sizes: list[str] | UnsetType = UNSET
    theme: Literal["light", "dark"] | UnsetType = UNSET


class Annotations(Struct, rename="camel"):
    """For whom, how important, how fresh."""

    audience: list[Role] | UnsetType = UNSET
    priority: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    last_modified: Instant | UnsetType = UNSET


class ToolAnnotations(Struct, rename="camel"):
    """Hints on what a tool does to the world."""

    title: Text = UNSET
    read_only_hint: Flag = UNSET
    destructive_hint: Flag = UNSET
    idempotent_hint: Flag = UNSET
    open_world_hint: Flag = UNSET


class InputSchema(Struct, rename="camel"):
    """Arguments are always an object; any further keyword is free."""

    type: Literal["object"]
    dialect: Text = field(name="$schema", default=UNSET)
    properties: Whatever = UNSET
    required: list[str] | UnsetType = UNSET


class OutputSchema(Struct, rename="camel"):
    """Any schema that is an object."""

    dialect: Text = field(name="$schema", default=UNSET)


class Tool(Struct, rename="camel"):
    """A tool definition. 2025-11-25's `execution` is named here because it must go."""

    name: str
    input_schema: InputSchema
    title: Text = UNSET
    description: Text = UNSET
    icons: list[Icon] | UnsetType = UNSET
    output_schema: OutputSchema | UnsetType = UNSET
    annotations: ToolAnnotations | UnsetType = UNSET
    meta: Whatever = field(name="_meta", default=UNSET)
    execution: Raw | UnsetType = UNSET


class PromptArgument(Struct, rename="camel"):
    """One argument of a prompt."""

    name: str
    title: Text = UNSET
    description: Text = UNSET
    required: Flag = UNSET


class Prompt(Struct, rename="camel"):
    """A prompt definition."""

    name: str
    title: Text = UNSET
    description: Text = UNSET
    icons: list[Icon] | UnsetType = UNSET
    arguments: list[PromptArgument] | UnsetType = UNSET
    meta: Whatever = field(name="_meta", default=UNSET)


class _Described(Struct, rename="camel"):
    name: str
    title: Text = UNSET
    description: Text = UNSET
    mime_type: Text = UNSET
    icons: list[Icon] | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    meta: Whatever = field(name="_meta", default=UNSET)


class Resource(_Described, kw_only=True, rename="camel"):
    """A resource definition."""

    uri: str
    size: int | UnsetType = UNSET


class ResourceTemplate(_Described, kw_only=True, rename="camel"):
    """A family of resources."""

    uri_template: str


class Contents(Struct, rename="camel"):
    """What a resource holds: text, or a blob."""

    uri: str
    text: Text = UNSET
    blob: bytes | UnsetType = UNSET
    mime_type: Text = UNSET
    meta: Whatever = field(name="_meta", default=UNSET)


class Completion(Struct, rename="camel"):
    """Suggestions; a hundred at most."""

    values: Annotated[list[str], Meta(max_length=100)]
    total: Count | UnsetType = UNSET
    has_more: Flag = UNSET


class TextBlock(Struct, tag="text", tag_field="type", rename="camel"):
    """Text."""

    text: str
    annotations: Annotations | UnsetType = UNSET
    meta: Whatever = field(name="_meta", default=UNSET)


class ImageBlock(Struct, tag="image", tag_field="type", rename="camel"):
    """A picture."""

    data: bytes
    mime_type: str
    annotations: Annotations | UnsetType = UNSET
    meta: Whatever = field(name="_meta", default=UNSET)


class AudioBlock(Struct, tag="audio", tag_field="type", rename="camel"):
    """A sound."""

    data: bytes
    mime_type: str
    annotations: Annotations | UnsetType = UNSET
    meta: Whatever = field(name="_meta", default=UNSET)


class LinkBlock(Resource, tag="resource_link", tag_field="type", rename="camel"):
    """A resource that may be read."""


class EmbeddedBlock(Struct, tag="resource", tag_field="type", rename="camel"):
    """A resource with what it holds."""

    resource: Contents
    annotations: Annotations | UnsetType = UNSET
    meta: Whatever = field(name="_meta", default=UNSET)


Block = TextBlock | ImageBlock | AudioBlock | LinkBlock | EmbeddedBlock
BLOCKS: Final[dict[str, type[Struct]]] = {
    "text": TextBlock,
    "image": ImageBlock,
    "audio": AudioBlock,
    "resource_link": LinkBlock,
    "resource": EmbeddedBlock,
}


class Message(Struct, rename="camel"):
    """One message of a prompt."""

    role: Role
    content: Block


class Implementation(Struct, rename="camel"):
    """Who speaks."""

    name: str
    version: str
    title: Text = UNSET
    description: Text = UNSET
    website_url: Text = UNSET
    icons: list[Icon] | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class _Part:
    decoder: Decoder[Any]
    is_required: bool
    shape: type[Struct] | None
    """The shape inside, for what can be mended instead of left out."""
    is_list: bool
    is_binary: bool


def attempt(decoder: Decoder[T], raw: Raw) -> T | None:
    """What it says, if a client would accept it as it is."""
    try:
        return decoder.decode(raw)
    except (DecodeError, RecursionError):
        return None


def fits(decoder: Decoder[Any], raw: Raw) -> bool:
    """Whether a client would accept it as it is."""
    return attempt(decoder, raw) is not None


def mend(shape: type[Struct], raw: Raw) -> Raw | dict[str, Any] | None:
    """The object without its wrong members; the very same if it has none; None if it cannot be saved."""
    if fits(_decoder(shape), raw):
        return raw
    members = decode_members(raw)
    return None if members is None else mend_members(shape, members)


def mend_members(shape: type[Struct], members: dict[str, Any]) -> dict[str, Any] | None:
    """As `mend`, for an object that was taken apart. Values that are not `Raw` are ours, and right."""
    parts = _parts(shape)
    mended: dict[str, Any] = {}
    for name, value in members.items():
        part = parts.get(name)
        kept = value if part is None or not isinstance(value, Raw) else _mend_part(part, value)
        if kept is not None:
            mended[name] = kept
    if any(part.is_required and name not in mended for name, part in parts.items()):
        return None
    return mended


def mend_each(shape: type[Struct], raws: list[Raw]) -> list[Any]:
    """Those of a list that can be saved."""
    return [kept for raw in raws if (kept := mend(shape, raw)) is not None]


def _mend_part(part: _Part, raw: Raw) -> Any:
    if fits(part.decoder, raw):
        return raw
    if part.is_binary:
        return as_base64(raw)
    if part.shape is None:
        return None
    if not part.is_list:
        return mend(part.shape, raw)
    return mend_each(part.shape, _ITEMS.decode(raw)) if fits(_ITEMS, raw) else None


_ITEMS: Final = Decoder(list[Raw])


@cache
def _decoder(shape: type[Struct]) -> Decoder[Any]:
    return Decoder(shape)


@cache
def _parts(shape: type[Struct]) -> dict[str, _Part]:
    parts: dict[str, _Part] = {}
    for info in fields(shape):
        choices = [choice for choice in get_args(info.type) if choice is not UnsetType]
        kind = choices[0] if UnsetType in get_args(info.type) and len(choices) == 1 else info.type
        is_list = get_origin(kind) is list
        inner = get_args(kind)[0] if is_list else kind
        parts[info.encode_name] = _Part(
            decoder=Decoder(kind),
            is_required=info.default is NODEFAULT,
            shape=inner if isinstance(inner, type) and issubclass(inner, Struct) else None,
            is_list=is_list,
            is_binary=kind is bytes,
        )
    return parts
