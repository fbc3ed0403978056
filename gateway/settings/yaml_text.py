"""Turns YAML text into plain values. Knows nothing about what the keys mean.

Stricter than YAML: a key written twice is an error, keys are text (`on:` and `1:`
are the names they look like), and a document must be of human size.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import yaml

from gateway.settings.problems import KeyPath, Problem, show

Value: TypeAlias = Any  # what YAML can say: mappings with text keys, lists, scalars
_LARGEST: Final = 100_000  # nodes, aliases counted as often as they are used: nested aliases multiply
_MERGE: Final = "tag:yaml.org,2002:merge"
_QUOTED_CONTENT: Final = re.compile(r"\b(alias|anchor|tag|character) '[^']*'|\b(alias|anchor|tag) \"[^\"]*\"")

_Loader: Any = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)  # the C one is ten times as fast, and not always built


class YamlInvalid(ValueError):
    """The text is not one YAML document; there is nothing to go on with."""


def parse(text: bytes | str, path: KeyPath = ()) -> tuple[Value, list[Problem]]:
    """Return the document's value and what is wrong inside it; `YamlInvalid` when there is no document."""
    try:
        loader = _Loader(text)
    except yaml.YAMLError as error:
        raise YamlInvalid(_explain(error, text)) from None
    try:
        node = loader.get_single_node()
        if node is None:
            return None, []
        build = _Build(loader)
        return build.value(node, path), build.problems
    except yaml.YAMLError as error:
        raise YamlInvalid(_explain(error, text)) from None
    except RecursionError:
        raise YamlInvalid("is nested too deeply for a configuration") from None
    finally:
        loader.dispose()


@dataclass(slots=True)
class _Build:
    loader: Any
    problems: list[Problem] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)
    _merged: set[int] = field(default_factory=set)
    _count: int = 0

    def value(self, node: yaml.Node, path: KeyPath) -> Value:
        self._count += 1
        if self._count > _LARGEST:
            raise YamlInvalid("is too large for a configuration")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            self.problems.append(Problem(show(path), "contains itself, through an alias"))
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        finally:
            self._open.discard(id(node))

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Value:
        try:
            return self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError):
            # A tag of another world, a date that is none, or a number with thousands of digits.
            self.problems.append(
                Problem(show(path), f"cannot be read as a YAML value{_where(node.start_mark)}")
            )
            return None

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Value]:
        if id(node) not in self._merged:
            self._merged.add(id(node))
            self._find_repeats(node, path)
            self._merge(node, path)
        pairs = [(key.value, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
        return {key: self.value(value, (*path, key)) for key, value in dict(pairs).items()}

    def _find_repeats(self, node: yaml.MappingNode, path: KeyPath) -> None:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(Problem(show(path), f"a key should be text{_where(key.start_mark)}"))
            elif key.value in lines:
                self.problems.append(
                    Problem(
                        show((*path, key.value)), f"is written twice, in lines {lines[key.value]} and {line}"
                    )
                )
            else:
                lines[key.value] = line

    def _merge(self, node: yaml.MappingNode, path: KeyPath) -> None:
        # `<<: *defaults`: what is merged comes first, so that the mapping's own keys win.
        try:
            self.loader.flatten_mapping(node)
        except yaml.YAMLError:
            self.problems.append(Problem(show((*path, "<<")), "merges something that is not a mapping"))
            node.value = [pair for pair in node.value if pair[0].tag != _MERGE]


def _where(mark: Any) -> str:
    return f" (line {mark.line + 1})"


def _explain(error: yaml.YAMLError, text: bytes | str) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        told = "a tab; YAML is indented with spaces" if _is_tab(text, mark.index) else _told(error, mark.line)
        return f"line {mark.line + 1}, column {mark.column + 1}: {told}"
    if isinstance(error, yaml.reader.ReaderError):
        return f"is not UTF-8 text (position {error.position})"
    return "is not YAML"


def _is_tab(text: bytes | str, index: int) -> bool:
    characters = text.decode("utf-8-sig", "replace") if isinstance(text, bytes) else text
    return characters[index : index + 1] == "\t"


def _told(error: yaml.MarkedYAMLError, line: int) -> str:
    problem, context, begun = error.problem or "not YAML", error.context or "", error.context_mark
    if problem.startswith("but "):
        problem = f"{context} {problem}"
    elif context.startswith("while ") and begun is not None and begun.line != line:
        problem = f"{problem} ({context} that begins in line {begun.line + 1})"  # where the fault often is
    # The library quotes names from the document; a secret in the wrong place must not be shown.
    return _QUOTED_CONTENT.sub(lambda match: match[1] or match[2], problem)
