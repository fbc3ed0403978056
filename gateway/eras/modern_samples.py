"""A legacy server's sampling request as a client of 2026-07-28 can read it. It knows no ask and no answer.

A strict client turns away the whole round for one member that is not what it
should be, such as a `null`. So a request is held against what the specification
has for it: a fitting one stays the bytes it was; of any other only what is wrong
is left out, and a block that no client knows is shown as the text that it is.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.json import Decoder

from gateway.eras import lists
from gateway.eras.blocks import as_text, is_whole, items, readable
from gateway.eras.shapes import (
    LARGEST_SAFE,
    NULL,
    AudioBlock,
    Block,
    Count,
    Flag,
    ImageBlock,
    Role,
    Text,
    TextBlock,
    Whatever,
    attempt,
    fits,
    mend_members,
)
from gateway.wire.jsonrpc import NotJson, Params, Raw, decode, decode_members, encode

Weight = Annotated[float, Meta(ge=0, le=1)] | UnsetType


class ToolUseBlock(Struct, tag="tool_use", tag_field="type", rename="camel"):
    """The model called a tool."""

    id: str
    name: str
    input: dict[str, Raw]
    meta: Whatever = field(name="_meta", default=UNSET)


class ToolResultBlock(Struct, tag="tool_result", tag_field="type", rename="camel"):
    """What came of it."""

    tool_use_id: str
    content: list[Block]
    is_error: Flag = UNSET
    meta: Whatever = field(name="_meta", default=UNSET)


SampleBlock = TextBlock | ImageBlock | AudioBlock | ToolUseBlock | ToolResultBlock
_SHAPES: Final[Mapping[str, type[Struct]]] = {
    "text": TextBlock,
    "image": ImageBlock,
    "audio": AudioBlock,
    "tool_use": ToolUseBlock,
    "tool_result": ToolResultBlock,
}


class _Message(Struct, rename="camel"):
    role: Role
    content: SampleBlock | list[SampleBlock]
    meta: Whatever = field(name="_meta", default=UNSET)


class _Hint(Struct):
    name: Text = UNSET


class _Preferences(Struct, rename="camel"):
    hints: list[_Hint] | UnsetType = UNSET
    cost_priority: Weight = UNSET
    speed_priority: Weight = UNSET
    intelligence_priority: Weight = UNSET


class _Choice(Struct):
    mode: Literal["auto", "required", "none"] | UnsetType = UNSET


class _Sample(Struct, rename="camel"):
    """All members but the messages, the tools and the limit, which have their own ways of being wrong."""

    model_preferences: _Preferences | UnsetType = UNSET
    system_prompt: Text = UNSET
    include_context: Literal["none", "thisServer", "allServers"] | UnsetType = UNSET
    temperature: float | UnsetType = UNSET
    stop_sequences: list[str] | UnsetType = UNSET
    metadata: Whatever = UNSET
    tool_choice: _Choice | UnsetType = UNSET


_MESSAGES: Final = Decoder(list[_Message])
_ITEMS: Final = Decoder(list[Raw])
_ROLE: Final = Decoder(Role)
_META: Final = Decoder(dict[str, Raw])
_WHOLE: Final = Decoder(Count)
_RESULT: Final = Raw(b'"tool_result"')


def most_tokens(raw: Raw | None) -> int | None:
    """The limit that a request sets, as the integer that it has to be; None if it sets none."""
    try:
        limit = None if raw is None else decode(raw)
    except NotJson:
        return None  # a number beyond all bounds
    return int(limit) if isinstance(limit, int | float) and not isinstance(limit, bool) else None


def modern_sample(params: Params) -> dict[str, Any]:
    """The parameters as a client may see them; what needs no change stays the server's bytes."""
    members: dict[str, Any] = dict(params)
    written = params.get("messages", NULL)
    messages = attempt(_MESSAGES, written)
    if messages is None or not all(map(_is_readable, messages)):
        members["messages"] = [_message(item) for item in items(written)]
    limit = params.get("maxTokens")
    if limit is None or not fits(_WHOLE, limit):
        members["maxTokens"] = max(-LARGEST_SAFE, min(most_tokens(limit) or 0, LARGEST_SAFE))
    if "tools" in params:
        members["tools"] = lists.sanitise("tools/list", params["tools"])
    return mend_members(_Sample, members) or members


def _is_readable(message: _Message) -> bool:
    blocks = message.content if isinstance(message.content, list) else [message.content]
    return all(all(map(is_whole, block.content)) for block in blocks if isinstance(block, ToolResultBlock))


def _message(raw: Raw) -> dict[str, Any]:
    members = decode_members(raw)
    if members is None:
        return {"role": "user", "content": as_text(raw)}
    role, content = members.get("role", NULL), members.get("content", Raw(b'""'))
    blocks = attempt(_ITEMS, content)
    message: dict[str, Any] = {
        **members,
        "role": role if fits(_ROLE, role) else "user",
        "content": _block(content) if blocks is None else [_block(block) for block in blocks],
    }
    if not fits(_META, members.get("_meta", NULL)):
        message.pop("_meta", None)
    return message


def _block(raw: Raw) -> Any:
    members = decode_members(raw)
    if members is not None and members.get("type") == _RESULT:
        content = [readable(item) for item in items(members.get("content", NULL))]
        return readable(Raw(encode({**members, "content": content})), _SHAPES)
    return readable(raw, _SHAPES)
