"""Carries out the command lines of Armada's cases: the commands' own code, by the door's own calls, on a store."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from holdfast.cli.armada import policies as commands
from holdfast.cli.armada.failure import Failed
from tools.cases.armada_catalogue import Door
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.message import Message

    from holdfast.cli.armada.line import ArmadaCommand
    from tools.cases.results import Case

_GET = re.compile(r"get (retry-?policy|retry-?policies)(?: ([\w.-]+))? > (\S+)")
_PUT = re.compile(r"(create|update) (?:retry-?policy )?-f (\S+)")


class _Command:
    """One command, as its code sees it."""

    def __init__(self, door: Door, words: Sequence[str] = (), file: Path | None = None) -> None:
        self.words, self.flags = words, {"file": str(file), "dry-run": False}
        self.written = ""
        self._door = door

    def call(self, _service: str, method: str, sent: Message, otherwise: str = "{}") -> Any:  # noqa: ANN401 - by method
        answer = self._door.call(method, sent)
        if isinstance(answer, str):
            raise Failed(otherwise.format(answer))
        return answer

    def document(self, text: str) -> None:
        self.written += text

    def out(self, line: str) -> None:
        """Nobody reads it."""

    def note(self, line: str) -> None:
        """Nobody reads it."""


def check_commands(case: Case) -> list[Mismatch]:
    """Carry out the command lines of a case, whose policies are there before, and compare whether all is accepted."""
    with TemporaryDirectory() as folder:
        try:
            _carry_out(case["policy"]["steps"], Path(folder))
        except Failed as error:
            return _compared(case, error.message)
    return _compared(case, "")


def _carry_out(steps: Sequence[str], folder: Path) -> None:
    door = Door()
    for step in steps:
        got, put = _GET.fullmatch(step), _PUT.fullmatch(step)
        if got is not None:
            names = [got[2]] if got[2] else []
            door.policy(*(names or ("a", "b")))
            command = _Command(door, names)
            _run(commands.GET if names else commands.GET_ALL, command)
            (folder / Path(got[3]).name).write_text(command.written, encoding="utf-8")
        elif put is not None:
            verb = commands.CREATE if put[1] == "create" else commands.UPDATE
            _run(verb, _Command(door, file=folder / Path(put[2]).name))
        else:
            msg = f"no checker knows the command {step!r}"
            raise Skip(msg)


def _run(verb: ArmadaCommand, command: _Command) -> None:
    if verb.run is not None:
        verb.run(command)


def _compared(case: Case, refused: str) -> list[Mismatch]:
    expect, got = case["expect"], "Reject" if refused else "Accept"
    if got != expect["action"]:
        return [Mismatch("action", expect["action"], f"{got} {refused}")]
    reason = str(expect.get("reason", ""))
    return [] if reason in refused else [Mismatch("reason", reason, refused)]
