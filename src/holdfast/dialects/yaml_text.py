"""Parses YAML into plain values, with the line of every field.

Works on parser events rather than the library's constructor: one pass gives values, lines, duplicate keys
and limits, and no tag can construct anything. Merge keys and custom tags are refused.
"""

from __future__ import annotations

from typing import Any

import yaml

from holdfast.dialects.scalars import Ambiguous, read_plain
from holdfast.domain.record import Struct, field
from holdfast.errors import Problem

MOST_NODES = 2_000_000
_PLAIN_TAGS = {
    "tag:yaml.org,2002:str",
    "tag:yaml.org,2002:map",
    "tag:yaml.org,2002:seq",
    "!",
}


class Root(Struct, gc=True):
    """One YAML document of any type."""

    value: Any = None
    lines: dict[str, int] = field(default_factory=dict)


class _Container(Struct, gc=True):
    value: dict[str, Any] | list[Any]
    path: str
    anchor: str | None = None
    key: str | None = None
    """The key whose value comes next; ``None`` while a mapping waits for a key."""
    size: int = 1


class _Refused(Exception):
    """The text cannot be read any further."""

    def __init__(self, message: str, line: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem("", message, hint=hint, line=line)


def read_yaml(text: str, *, deepest: int, doubled: list[Problem] | None = None) -> tuple[list[Root], list[Problem]]:
    """Read every document of a text.

    Args:
        text: The text.
        deepest: The most levels of nesting.
        doubled: Where to add duplicate keys, of which the last one counts then; by default they are problems.

    Returns:
        The documents and the problems; reading stops at the first problem that leaves the rest unclear.
    """
    builder = _Builder(deepest, doubled)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    except _Refused as refused:
        builder.problems.append(refused.problem)
    except yaml.MarkedYAMLError as error:
        builder.problems.append(_marked(error, text))
    except (yaml.YAMLError, RecursionError) as error:
        first = str(error).splitlines()[0]
        builder.problems.append(Problem("", f"not YAML: {first}"))
    return builder.roots, builder.problems


def _marked(error: yaml.MarkedYAMLError, text: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    message = ", ".join(part for part in (error.context, error.problem) if part)
    if mark is None:
        return Problem("", f"not YAML: {message}")
    line = int(mark.line)
    written = "".join(text.splitlines()[line : line + 1])
    indent = written[: len(written) - len(written.lstrip())]
    hint = "indent with spaces, not tabs" if "\t" in indent else None
    return Problem("", f"not YAML: {message}", hint=hint, line=line + 1)


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return 1 if mark is None else int(mark.line) + 1


class _Builder:
    """Builds values from parser events."""

    def __init__(self, deepest: int, doubled: list[Problem] | None = None) -> None:
        self.roots: list[Root] = []
        self.problems: list[Problem] = []
        self._doubled = self.problems if doubled is None else doubled
        self._deepest = deepest
        self._stack: list[_Container] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0

    def take(self, event: yaml.Event) -> None:
        """Take one event."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent):
            self._start({}, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._start([], event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self.roots.append(Root())
            self._anchors.clear()

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        line = _line(event)
        self._check_tag(event.tag, line)
        plain = event.implicit[0] and event.tag is None
        value = read_plain(event.value) if plain else event.value
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._place(value, line, 1, written=event.value)

    def _start(self, value: dict[str, Any] | list[Any], event: yaml.CollectionStartEvent) -> None:
        line = _line(event)
        self._check_tag(event.tag, line)
        if len(self._stack) >= self._deepest:
            msg = f"is nested more than {self._deepest} levels deep"
            raise _Refused(msg, line)
        path = self._place(value, line, 1)
        self._stack.append(_Container(value, path, event.anchor))

    def _end(self, event: yaml.CollectionEndEvent) -> None:
        done = self._stack.pop()
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.size)
        if self._stack:
            self._grow(self._stack[-1], done.size, _line(event))

    def _alias(self, event: yaml.AliasEvent) -> None:
        line = _line(event)
        if event.anchor not in self._anchors:
            msg = f"the alias *{event.anchor} has no anchor before it"
            raise _Refused(msg, line)
        value, size = self._anchors[event.anchor]
        self._place(value, line, size)

    def _check_tag(self, tag: str | None, line: int) -> None:
        if tag is not None and tag not in _PLAIN_TAGS:
            msg = f"the tag {tag!r} is not accepted"
            raise _Refused(msg, line, "write plain YAML without tags")

    def _grow(self, container: _Container, size: int, line: int) -> None:
        container.size += size
        if container.size > MOST_NODES:
            msg = f"its aliases expand to more than {MOST_NODES} values"
            raise _Refused(msg, line)

    def _place(self, value: object, line: int, size: int, written: str | None = None) -> str:
        """Put a value at the current position; returns its path."""
        self._nodes += 1
        if self._nodes > MOST_NODES:
            msg = f"holds more than {MOST_NODES} values"
            raise _Refused(msg, line)
        if not self._stack:
            self.roots[-1].value = value
            self.roots[-1].lines[""] = line
            return ""
        top = self._stack[-1]
        self._grow(top, size, line)
        if isinstance(top.value, list):
            top.value.append(value)
            path = f"{top.path}[{len(top.value) - 1}]"
        elif top.key is None:
            self._take_key(top, value, written, line)
            return top.path
        else:
            top.value[top.key] = value
            path = f"{top.path}.{top.key}" if top.path else top.key
            top.key = None
            self.roots[-1].lines.setdefault(path, line)
            return path
        self.roots[-1].lines[path] = line
        return path

    def _take_key(self, top: _Container, key: object, written: str | None, line: int) -> None:
        if written is None:
            msg = "a mapping's key must be text"
            raise _Refused(msg, line, 'quote a value that starts with "{" or "["')
        if written == "<<":
            msg = "merge keys (<<) are not accepted"
            raise _Refused(msg, line, "write the fields out")
        # `on` is a field here, and no mapping has a key for true; the other words of YAML 1.1 are more likely mistakes.
        if not isinstance(key, str) or (isinstance(key, Ambiguous) and written != "on"):
            self.problems.append(
                Problem("", f"the key {written!r} is not text", hint=f'quote it: "{written}"', line=line)
            )
        if written in top.value:
            path = f"{top.path}.{written}" if top.path else written
            first = self.roots[-1].lines.get(path)
            message = f"duplicate key {written!r}, first on line {first}"
            self._doubled.append(Problem(path, message, hint="keep one of them", line=line))
        top.key = written
        path = f"{top.path}.{written}" if top.path else written
        self.roots[-1].lines.setdefault(path, line)
