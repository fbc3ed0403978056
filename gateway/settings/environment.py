"""What the environment adds to a configuration: `${NAME}` in values, and `HOLDFAST_…` over keys.

The environment is given as a mapping; this module never reads the process's own.

`HOLDFAST_UPSTREAMS__CRM__URL` is `upstreams.crm.url`: `__` goes one level down,
names are matched without regard to case, `-` is written `_`; what stands under
`env` and is not in the file is taken in capitals. A list is written `a,b` or
`[a, b]`, a mapping `{a: b}`, nothing is the empty text.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias, get_args, get_origin

from gateway.settings.fields import Section
from gateway.settings.model import Settings
from gateway.settings.problems import KeyPath, Problem, did_you_mean, show
from gateway.settings.yaml_text import Value, YamlInvalid, parse

PREFIX: Final = "HOLDFAST_"
_REFERENCE: Final = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{", re.ASCII)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LINK: Final = r"(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
_Kind: TypeAlias = Any  # an annotation of the model


@dataclass(slots=True)
class Environment:
    """One reading of the environment: what was used, what set which key, what was wrong."""

    variables: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)
    spoilt: set[str] = field(default_factory=set)
    """Paths whose value could not be made; what the model says about them is noise."""
    sources: dict[KeyPath, str] = field(default_factory=dict)
    """Which variable set a path, for the error messages."""
    _referred: set[str] = field(default_factory=set)
    _set: dict[KeyPath, str] = field(default_factory=dict)

    def interpolate(self, value: Value, path: KeyPath = ()) -> Value:
        """Replace `${NAME}` in text values; `$${` is a literal `${`. What comes in is not looked at again."""
        if isinstance(value, dict):
            return {key: self.interpolate(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.interpolate(item, (*path, index)) for index, item in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        before = len(self.problems)
        text = _REFERENCE.sub(lambda match: self._variable(match, path), value)
        if len(self.problems) > before:
            self.spoilt.add(show(path))
            return None
        return text

    def _variable(self, match: re.Match[str], path: KeyPath) -> str:
        if match[0] == "$${":
            return "${"
        name = match[1]
        if name is None or not _VARIABLE.fullmatch(name):
            # The text between the braces is not shown: it may be a secret that only looks like a name.
            self.problems.append(
                Problem(show(path), "has a ${…} that is not ${NAME}; a literal ${ is written $${")
            )
            return ""
        self._referred.add(name)
        if name not in self.variables:
            self.problems.append(Problem(show(path), f"environment variable {name} is not set"))
            return ""
        return self.variables[name]

    def override(self, data: dict[str, Value]) -> None:
        """Write each `HOLDFAST_…` variable over its key; one that names no key is a problem."""
        own = [
            name for name in self.variables if name.upper().startswith(PREFIX) and name not in self._referred
        ]
        links = _service_links(own, self.variables)
        # Short names first, so that HOLDFAST_SEALING__TTL wins over a whole HOLDFAST_SEALING.
        for name in sorted(own, key=lambda name: (name.count("__"), name)):
            if not links.fullmatch(name):
                self._override_one(data, name)

    def _override_one(self, data: dict[str, Value], name: str) -> None:
        path: tuple[str, ...] = ()
        kind: _Kind = Settings
        place: Value = data
        for part in name[len(PREFIX) :].lower().split("__"):
            found = _key(part, kind, path, place)
            if found is None:
                self.problems.append(Problem(name, _unknown(name, part, kind, path)))
                return
            key, kind = found
            path = (*path, key)
            place = place.get(key) if isinstance(place, dict) else None
        if path in self._set:
            self.problems.append(Problem(name, f"sets the same key as {self._set[path]}"))
        self._set[path] = name
        self._write(data, path, self._read(self.variables[name], kind, path, name))

    def _write(self, data: dict[str, Value], path: tuple[str, ...], value: Value) -> None:
        place = data
        for depth, key in enumerate(path[:-1], start=1):
            if place.get(key) is None:
                place[key] = {}
                self.sources[path[:depth]] = self._set[path]
            place = place[key]
            if not isinstance(place, dict):
                return  # the file has something else there, and the model will say so
        place[path[-1]] = value
        self.sources[path] = self._set[path]

    def _read(self, text: str, kind: _Kind, path: KeyPath, name: str) -> Value:
        is_list = _origin(_bare(kind)) is tuple
        if text == "":
            return None
        if is_list and not text.lstrip().startswith("["):
            return [item.strip() for item in text.split(",") if item.strip()]
        if not is_list and not fields_of(kind) and value_kind(kind) is None:
            return text
        try:
            value, problems = parse(text, path)
        except YamlInvalid as error:
            value, problems = None, [Problem(show(path), f"is not YAML: {error} (set by {name})")]
        self.problems += problems
        self.spoilt |= {show(path)} if problems else set()
        return value


def _key(part: str, kind: _Kind, path: KeyPath, place: Value) -> tuple[str, _Kind] | None:
    """One level down: the key as the file spells it, and what may stand there. Nothing: no such key."""
    inner = value_kind(kind)
    if inner is None:
        known = fields_of(kind)
        return (part, known[part]) if part in known else None
    if not part:
        return None
    for key in place if isinstance(place, dict) else ():
        if key.lower().replace("-", "_") == part:
            return key, inner
    # Names of upstreams have no `_`, so there it can only stand for `-`; variables are written in capitals.
    match path:
        case ("upstreams",):
            return part.replace("_", "-"), inner
        case ("upstreams", _, "env"):
            return part.upper(), inner
        case _:
            return part, inner


def _unknown(name: str, part: str, kind: _Kind, path: KeyPath) -> str:
    above = PREFIX + "".join(f"{step}__".replace("-", "_").upper() for step in path)
    known = fields_of(kind)
    # HOLDFAST_LOG_LEVEL is what other programs would call it.
    deeper = [f"{key}__{inner}" for key in known for inner in fields_of(known[key])]
    hint = did_you_mean(part, [*known, *deeper], lambda key: above + key.upper())
    return f"unknown variable: it is not a setting, and no ${{{name}}} refers to it{hint}"


def fields_of(kind: _Kind) -> dict[str, _Kind]:
    """Return the keys that a section has, with what may stand under each; nothing for what is no section."""
    kind = _bare(kind)
    if isinstance(kind, type) and issubclass(kind, Section):
        return {key: info.annotation for key, info in kind.model_fields.items()}
    return {}


def value_kind(kind: _Kind) -> _Kind | None:
    """Return what stands under the free names of a mapping; None for what is no such mapping."""
    kind = _bare(kind)
    return get_args(kind)[1] if _origin(kind) is dict else None


def known_keys(path: KeyPath) -> Iterable[str]:
    """Return the keys that may stand at a path of the model."""
    kind: _Kind = Settings
    for part in path:
        inner = value_kind(kind)
        if inner is None and isinstance(part, int):
            inner = next(iter(get_args(_bare(kind))), None)
        kind = inner if inner is not None else fields_of(kind).get(str(part))
    return fields_of(kind)


def _bare(kind: _Kind) -> _Kind:
    return get_args(kind)[0] if _origin(kind) is Annotated else kind


def _origin(kind: _Kind) -> object:
    return get_origin(kind)


def _service_links(names: Iterable[str], variables: Mapping[str, str]) -> re.Pattern[str]:
    """Match what Kubernetes sets in every pod for a Service called `holdfast` or `holdfast-…`.

    Recognised by the pair that no one would write by hand; without it
    HOLDFAST_PORT is the misspelling that it looks like.
    """
    hosts = [name.removesuffix("_SERVICE_HOST") for name in names if name.endswith("_SERVICE_HOST")]
    services = [re.escape(name) for name in hosts if f"{name}_SERVICE_PORT" in variables]
    return re.compile(f"({'|'.join(services)})_{_LINK}" if services else r"(?!)")
