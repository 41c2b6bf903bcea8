"""Reads command lines as ``armadactl`` does, which is written with Go's Cobra: verbs, nouns and flags in any order.

What it says of a wrong one are Cobra's words, which its users know.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from holdfast.cli.armada.failure import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_FALSE, _TRUE = ("0", "f", "false"), ("1", "t", "true")
_WIDTH = 24


class FlagKind(Enum):
    """What a flag takes."""

    TEXT = auto()
    LIST = auto()
    """Separated by commas, or the flag again."""
    NUMBER = auto()
    FLAG = auto()
    COUNT = auto()
    """Nothing; how often it is given counts."""


_DEFAULTS: Mapping[FlagKind, Any] = {
    FlagKind.TEXT: "",
    FlagKind.LIST: (),
    FlagKind.NUMBER: 0.0,
    FlagKind.FLAG: False,
    FlagKind.COUNT: 0,
}
_SWITCHES = (FlagKind.FLAG, FlagKind.COUNT)


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag."""

    name: str
    kind: FlagKind
    help: str
    short: str = ""
    default: Any = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class ArmadaCommand:
    """A command, or a group of some."""

    name: str
    summary: str
    run: Callable[..., int] | None = None
    """Takes an ``Invocation``; a group without shows its help."""
    words: str = ""
    """What follows it, as its help writes that."""
    count: int | None = 0
    """How many words follow it; ``None``: any number."""
    flags: tuple[Flag, ...] = ()
    verbs: tuple[ArmadaCommand, ...] = ()
    aliases: tuple[str, ...] = ()
    exclusive: tuple[str, str] | None = None
    """Two flags of which there may be one."""
    needs: tuple[str, str] | None = None
    """A flag that must be given where the other is not."""


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """A command line that was read."""

    verb: ArmadaCommand
    path: str
    """The words by which the verb was found."""
    words: Sequence[str]
    flags: Mapping[str, Any]
    wants_help: bool = False


def parse(words: Sequence[str], root: ArmadaCommand, name: str) -> ParsedLine:
    """Read a command line.

    Args:
        words: What follows the name of the program.
        root: All commands.
        name: What the program is called.

    Raises:
        Failed: It is wrong.
    """
    verb, path, rest = _found(words, root, name)
    usage = f"Run '{path} --help' for usage."
    try:
        given, left = _split(rest, {**_by_name(root), **_by_name(verb)})
    except Failed as error:
        raise Failed(error.message, usage) from None
    if given.pop("help", False) or verb.run is None:
        return ParsedLine(verb, path, left, given, wants_help=True)
    told = _wrong(verb, path, left, given)
    if told is not None:
        raise Failed(told, usage)
    known = (*root.flags, *verb.flags)
    defaults = {one.name: _DEFAULTS[one.kind] if one.default is None else one.default for one in known}
    return ParsedLine(verb, path, left, {**defaults, **given})


def _by_name(verb: ArmadaCommand) -> dict[str, Flag]:
    known = (*verb.flags, Flag("help", FlagKind.FLAG, "Show what it does.", "h"))
    return {**{f"--{one.name}": one for one in known}, **{f"-{one.short}": one for one in known if one.short}}


def _found(words: Sequence[str], root: ArmadaCommand, name: str) -> tuple[ArmadaCommand, str, list[str]]:
    """Follow the words to a verb; returns it, the way there, and all other words in their order."""
    verb, path, rest, left = root, name, list[str](), deque(words)
    while left:
        word = left.popleft()
        if word == "--":
            return verb, path, [*rest, word, *left]
        if word.startswith("-") and len(word) > 1:
            rest.append(word)
            flag = {**_by_name(root), **_by_name(verb)}.get(word)
            if flag is not None and flag.kind not in _SWITCHES and left:
                rest.append(left.popleft())
            continue
        child = next((one for one in verb.verbs if word in (one.name, *one.aliases)), None)
        if child is None:
            if verb is root:
                told = f'unknown command "{word}" for "{name}"'
                raise Failed(told, f"Run '{name} --help' for usage.")
            return verb, path, [*rest, word, *left]
        verb, path = child, f"{path} {child.name}"
    return verb, path, rest


def _split(words: Sequence[str], known: Mapping[str, Flag]) -> tuple[dict[str, Any], list[str]]:
    given: dict[str, Any] = {}
    rest: list[str] = []
    left = deque(words)
    while left:
        word = left.popleft()
        if word == "--":
            return given, [*rest, *left]
        if not word.startswith("-") or len(word) == 1:
            rest.append(word)
        elif word.startswith("--"):
            spelt, equals, value = word.partition("=")
            if spelt not in known:
                told = f"unknown flag: {spelt}"
                raise Failed(told)
            _take(given, known[spelt], spelt, value if equals else None, left)
        else:
            _short(given, known, word, left)
    return given, rest


def _short(given: dict[str, Any], known: Mapping[str, Flag], word: str, left: deque[str]) -> None:
    """Read ``-l value``, ``-lvalue`` and switches that are written together."""
    letters = word[1:]
    while letters:
        flag, letters_left = known.get(f"-{letters[0]}"), letters[1:]
        if flag is None:
            told = f"unknown shorthand flag: {letters[0]!r} in {word}"
            raise Failed(told)
        if flag.kind in _SWITCHES and not letters_left.startswith("="):
            _take(given, flag, f"-{flag.short}, --{flag.name}", None, left)
            letters = letters_left
            continue
        value = letters_left.removeprefix("=") if letters_left else None
        _take(given, flag, f"-{flag.short}, --{flag.name}", value, left)
        return


def _take(given: dict[str, Any], flag: Flag, spelt: str, value: str | None, left: deque[str]) -> None:
    if flag.kind is FlagKind.COUNT:
        given[flag.name] = given.get(flag.name, 0) + 1
        return
    if flag.kind is FlagKind.FLAG:
        given[flag.name] = True if value is None else _truth(value, spelt)
        return
    if value is None:
        if not left:
            told = f"flag needs an argument: {spelt}"
            raise Failed(told)
        value = left.popleft()
    if flag.kind is FlagKind.LIST:
        given[flag.name] = (*given.get(flag.name, ()), *(value.split(",") if value else ()))
    elif flag.kind is FlagKind.NUMBER:
        given[flag.name] = number(value, f'invalid argument "{value}" for "{spelt}" flag: ')
    else:
        given[flag.name] = value


def number(text: str, told: str) -> float:
    """Read a number, as Go does.

    Raises:
        Failed: It is none.
    """
    try:
        return float(text)
    except ValueError:
        told = f'{told}strconv.ParseFloat: parsing "{text}": invalid syntax'
        raise Failed(told) from None


def _truth(text: str, spelt: str) -> bool:
    if text.lower() not in (*_TRUE, *_FALSE):
        told = f'invalid argument "{text}" for "{spelt}" flag: strconv.ParseBool: parsing "{text}": invalid syntax'
        raise Failed(told)
    return text.lower() in _TRUE


def _wrong(verb: ArmadaCommand, path: str, words: Sequence[str], given: Mapping[str, Any]) -> str | None:
    if verb.count == 0 and words and not verb.verbs:
        return f'unknown command "{words[0]}" for "{path}"'
    if verb.count is not None and len(words) != verb.count:
        return f"accepts {verb.count} arg(s), received {len(words)}"
    required = {one.name for one in verb.flags if one.required}
    if verb.needs is not None and not given.get(verb.needs[1]):
        required.add(verb.needs[0])
    missing = ", ".join(f'"{one}"' for one in sorted(required - given.keys()))
    if missing:
        return f"required flag(s) {missing} not set"
    if verb.exclusive is not None and given.keys() >= set(verb.exclusive):
        group, names = " ".join(verb.exclusive), " ".join(sorted(verb.exclusive))
        return f"if any flags in the group [{group}] are set none of the others can be; [{names}] were all set"
    return None


def help_of(parsed: ParsedLine, root: ArmadaCommand) -> str:
    """Write what a verb does and takes."""
    verb = parsed.verb
    lines = [verb.summary, "", "Usage:"]
    if verb.run is not None:
        spelt = (parsed.path, verb.words, "[flags]" if verb.flags else "")
        lines.append(f"  {' '.join(filter(None, spelt))}")
    if verb.verbs:
        lines += [f"  {parsed.path} [command]", "", "Available Commands:"]
        lines += [f"  {one.name:<{_WIDTH}} {one.summary}" for one in verb.verbs]
    shown = [one for one in verb.flags if one.help] if verb is not root else []
    if shown:
        lines += ["", "Flags:", *map(_flag_line, shown)]
    return "\n".join([*lines, "", "Global Flags:", *map(_flag_line, root.flags), ""])


def _flag_line(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else "    "
    taken = {FlagKind.TEXT: " string", FlagKind.LIST: " strings", FlagKind.NUMBER: " float"}.get(flag.kind, "")
    return f"  {short}{f'--{flag.name}{taken}':<{_WIDTH}} {flag.help}"
