"""Turns file, environment and command line into `Settings`, or into a list of everything that is wrong with them.

    YAML file -> ${NAME} in values -> HOLDFAST_… variables -> command line -> model -> checks between settings

No step stops at the first error, and no message repeats a value.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from gateway.settings.check import check
from gateway.settings.environment import Environment, known_keys
from gateway.settings.keys import KeysFileUnusable, read_keys_file
from gateway.settings.model import Settings
from gateway.settings.problems import KeyPath, Problem, describe, show
from gateway.settings.units import Address
from gateway.settings.yaml_text import Value, YamlInvalid, parse

ONLY_UPSTREAM: Final = "default"
_REMOVALS: Final = 3  # a root without its wrong `uri` is wrong itself, and nothing nests deeper than that
_STAND_IN_URL: Final = "http://missing.invalid/"
_STAND_IN_COMMAND: Final = ["missing"]
_FILES: Final = (("sealing", "keys_file"), ("tls", "cert_file"), ("tls", "key_file"))
_FILES_OF_UPSTREAM: Final = (
    ("cwd",),
    ("tls", "ca_file"),
    ("tls", "cert_file"),
    ("tls", "key_file"),
    ("auth", "jwt", "jwks_file"),
    ("auth", "jwt", "ca_file"),
)


class ConfigInvalid(Exception):
    """The configuration cannot be used; `problems` is everything that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(dict.fromkeys(problems))
        super().__init__("; ".join(map(str, self.problems)))


def load(
    path: Path | None,
    *,
    environ: Mapping[str, str],
    overrides: Mapping[str, str | Address] | None = None,
) -> Settings:
    """Load a file (or none: the environment alone), with the command line's `overrides` by dotted key."""
    environment = Environment(environ)
    data: dict[str, Value] = {}
    if path is not None:
        value, problems = _read(path)
        environment.problems += problems
        data = environment.interpolate(value)
    return _finish(data, environment, overrides or {}, path.parent if path else None)


def from_upstream_url(
    url: str,
    listen: Address | str | None = None,
    admin: Address | str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    log_level: str | None = None,
) -> Settings:
    """Return the settings for one upstream and no file; the rest is the environment's, or default."""
    given = {
        f"upstreams.{ONLY_UPSTREAM}.url": url,
        "listen": listen,
        "admin": admin,
        "log.level": log_level,
    }
    overrides = {key: value for key, value in given.items() if value is not None}
    return load(None, environ=environ or {}, overrides=overrides)


def sealing_secrets(settings: Settings) -> list[str]:
    """Return the key ring as it is written: `keys`, then the lines of `keys_file`. Empty: no key is set."""
    secrets = [key.get_secret_value() for key in settings.sealing.keys]
    if settings.sealing.keys_file is not None:
        try:
            secrets += read_keys_file(settings.sealing.keys_file)
        except KeysFileUnusable as error:
            raise ConfigInvalid([Problem("sealing.keys_file", str(error))]) from None
    return secrets


def _read(path: Path) -> tuple[dict[str, Value], list[Problem]]:
    try:
        value, problems = parse(path.read_bytes())
    except OSError as error:
        raise ConfigInvalid(
            [Problem("", f"cannot be read: {error.strerror or type(error).__name__}")]
        ) from None
    except YamlInvalid as error:
        raise ConfigInvalid([Problem("", str(error))]) from None
    if value is None:
        raise ConfigInvalid([Problem("", "is empty; it needs at least upstreams: {NAME: {url: URL}}")])
    if not isinstance(value, dict):
        raise ConfigInvalid([Problem("", "should be a mapping (key: value) at the top")])
    return value, problems


def _finish(
    data: dict[str, Value],
    environment: Environment,
    overrides: Mapping[str, str | Address],
    folder: Path | None,
) -> Settings:
    environment.override(data)
    for key, value in overrides.items():
        *parents, last = key.split(".")
        place = data
        for part in parents:
            if not isinstance(place.get(part), dict):
                place[part] = {}
            place = place[part]
        place[last] = value
    _anchor(data, folder)

    problems = list(environment.problems)
    try:
        settings: Settings | None = Settings.model_validate(data)
    except ValidationError as error:
        # Inputs are needed to tell "no value" from "wrong value"; `describe` never shows them.
        errors: list[Any] = error.errors(include_url=False)
        problems += _translate(errors, environment)
        settings = _with_faults_removed(data, errors)
    if settings is not None:
        known = {problem.path for problem in problems}
        found = [problem for problem in check(settings) if problem.path not in known]
        problems += [_with_source(problem, environment) for problem in found]
    if problems or settings is None:
        raise ConfigInvalid(problems)
    return settings


def _anchor(data: dict[str, Value], folder: Path | None) -> None:
    # Relative to the file that names it, so that it does not matter where the process was started.
    if folder is None:
        return
    upstreams = data.get("upstreams")
    for *way, key in _FILES:
        _anchor_one(data, way, key, folder)
    for upstream in upstreams.values() if isinstance(upstreams, dict) else ():
        for *way, key in _FILES_OF_UPSTREAM:
            _anchor_one(upstream, way, key, folder)


def _anchor_one(section: Value, way: Sequence[str], key: str, folder: Path) -> None:
    for step in way:
        section = section.get(step) if isinstance(section, dict) else None
    if isinstance(section, dict) and isinstance(section.get(key), str):
        section[key] = str(folder / section[key])


def _translate(errors: Sequence[Any], environment: Environment) -> list[Problem]:
    problems = []
    for error in errors:
        path = _path(error)
        if any(show(path[:length]) in environment.spoilt for length in range(1, len(path) + 1)):
            continue
        message = describe(error, known_keys(path[:-1]))
        lengths = range(len(path), 0, -1)
        sources = (
            environment.sources[path[:length]] for length in lengths if path[:length] in environment.sources
        )
        source = next(sources, None)
        problems.append(Problem(show(path), f"{message} (set by {source})" if source else message))
    return problems


def _with_source(problem: Problem, environment: Environment) -> Problem:
    sources = {show(path): name for path, name in environment.sources.items()}
    within = [path for path in sources if f"{problem.path}.".startswith((f"{path}.", f"{path}["))]
    if not within:
        return problem
    return Problem(problem.path, f"{problem.message} (set by {sources[max(within, key=len)]})")


def _path(error: Any) -> KeyPath:
    # pydantic marks a finding about a mapping's key by a last step of its own.
    path: KeyPath = error["loc"]
    return path[:-1] if path[-1:] == ("[key]",) else path


def _with_faults_removed(data: dict[str, Value], errors: Sequence[Any]) -> Settings | None:
    """What is left when every refused value is taken out, so that checks between the others still run."""
    remaining = deepcopy(data)
    for _ in range(_REMOVALS):
        # From the back, so that removing an item does not move the next one.
        for error in sorted(errors, key=_position, reverse=True):
            match _path(error):
                case ("upstreams", str(name), "url" | "command" as way):
                    # An upstream whose URL is wrong still has its path and the rest.
                    kept = remaining["upstreams"][name] or {}
                    stand_in = _STAND_IN_URL if way == "url" else _STAND_IN_COMMAND
                    remaining["upstreams"][name] = {**kept, way: stand_in}
                case path:
                    _remove(remaining, path[:-1] if error["type"] == "missing" else path)
        if not remaining.get("upstreams"):
            remaining["upstreams"] = {ONLY_UPSTREAM: {"url": _STAND_IN_URL}}
        try:
            return Settings.model_validate(remaining)
        except ValidationError as error:
            errors = error.errors(include_url=False)
    return None


def _position(error: Any) -> list[tuple[bool, str | int]]:
    return [(isinstance(part, int), part) for part in error["loc"]]


def _remove(data: dict[str, Value], path: KeyPath) -> None:
    place: Value = data
    try:
        for part in path[:-1]:
            place = place[part]
        del place[path[-1]]
    except (LookupError, TypeError):
        return  # it went already, with something larger
