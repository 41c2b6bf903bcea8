"""Checks Fluster's cases of what programs find around them: variables, ports and work directories of real ones."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.api.fluster._generated import cluster
from tools.cases.fluster_ports import is_given_back
from tools.cases.fluster_programs import programs
from tools.cases.fluster_table import Whole
from tools.cases.prose import without_remark
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.cases.results import Case

_GIVEN = frozenset({"attempt", "user_env", "env", "env_vars", "job", "job_id", "name", "ports", "controller"})
_WITHOUT_EFFECT = frozenset({"max_retries_failure", "max_retries_preemption"})
"""As many retries are asked for as the case needs."""
_ATTEMPT = re.compile(r"(?:the )?(first|second|third|fourth)(?: (attempt|retry))?")
_PLACES = ("first", "second", "third", "fourth")
_REMOVAL_S, _LOOK_S = 5.0, 0.01
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


class _Told:
    """What the programs of a job found, by attempt."""

    def __init__(self, case: Case, attempts: int, *, writes: str = "") -> None:
        given = case["given"]
        if unknown := given.keys() - _GIVEN - _WITHOUT_EFFECT:
            msg = f"not understood: given {', '.join(sorted(unknown))}"
            raise Skip(msg)
        name = str(given.get("job", given.get("job_id", given.get("name", "j1"))))
        variables = {**given.get("user_env", {}), **given.get("env", {}), **given.get("env_vars", {})}
        sent: dict[str, Any] = {"ports": given.get("ports", [])}
        if variables:
            sent["environment"] = cluster.EnvironmentConfig(env_vars=variables)
        with programs(str(given.get("controller", ""))) as opened:
            self.each = opened.run(name, failures=attempts - 1, writes=[writes] if writes else [], **sent)
            self.there = [not _is_removed(Path(one["folder"])) for one in self.each]

    @property
    def last(self) -> Mapping[str, Any]:
        """What the last attempt found."""
        return self.each[-1]

    def numbers(self, attempt: int) -> list[str]:
        """List the ports of an attempt."""
        return [value for name, value in sorted(self.each[attempt]["environ"].items()) if "FLUSTER_PORT_" in name]


def _is_removed(folder: Path) -> bool:
    """Say whether a work directory is removed, which happens soon after the end of its attempt was told."""
    until = time.monotonic() + _REMOVAL_S
    while folder.is_dir() and time.monotonic() < until:
        time.sleep(_LOOK_S)
    return not folder.is_dir()


def attempts_of(given: object) -> int:
    """Read which attempt is meant: ``0``, ``first retry``; returns how many there are with it."""
    if isinstance(given, int):
        return given + 1
    match = _ATTEMPT.fullmatch(str(given))
    if match is None:
        msg = f"not understood: given the attempt {given!r}"
        raise Skip(msg)
    return _PLACES.index(match[1]) + (2 if match[2] == "retry" else 1)


def starts(case: Case, match: re.Match[str]) -> list[Mismatch]:
    """Start a job, and look at what its program finds."""
    told = _Told(case, attempts_of(case["given"].get("attempt", 0)))
    environ, read = told.last["environ"], match.groupdict().get("name")
    found: dict[str, object] = {}
    for name, wanted in case["expect"].items():
        if name == "value" and read:
            found[name] = environ.get(read)
        elif name in {"env_present", "env_absent"}:
            found[name] = [one for one in wanted if (one in environ) is (name == "env_present")]
        elif _VARIABLE.fullmatch(name):
            found[name] = environ.get(name)
        elif name in {"ports_distinct", "ports_unique"}:
            found[name] = len({*told.numbers(-1)}) == len(told.numbers(-1)) == len(case["given"].get("ports", ()))
        elif name == "workdir_basename":
            found[name] = Path(told.last["folder"]).name
    return _compared(case, found)


def lists(case: Case, match: re.Match[str]) -> list[Mismatch]:
    """Have one attempt leave a file behind, and another look for it."""
    first, second, file = int(match["first"]), int(match["second"]), Path(match["file"]).name
    if second != first + 1:
        msg = f"not understood: when {match[0]!r}"
        raise Skip(msg)
    told = _Told(case, second + 1, writes=file)
    words = {True: "kept", False: "removed"}
    found: dict[str, object] = {
        f"{Path(file).stem}_visible": file in told.last["files"],
        **{f"attempt_{attempt}_workdir": words[there] for attempt, there in enumerate(told.there)},
    }
    return _compared(case, found)


def ports(case: Case, match: re.Match[str]) -> list[Mismatch]:
    """Have an attempt fail that had ports."""
    failed = int(match["attempt"])
    told = _Told(case, failed + 2)
    before, after = told.numbers(failed), told.numbers(failed + 1)
    asked = len(case["given"]["ports"])
    anew = len(before) == len({*before}) == len(after) == len({*after}) == asked and not {*before} & {*after}
    said = f"released, then allocated anew for attempt {failed + 1}"
    return _compared(case, {"ports": said if anew and is_given_back() else f"{before}, then {after}"})


def _compared(case: Case, found: Mapping[str, object]) -> list[Mismatch]:
    expect = {name: wanted for name, wanted in case["expect"].items() if name != "why"}
    if unknown := expect.keys() - found.keys():
        msg = f"not understood: expects {', '.join(sorted(unknown))}"
        raise Skip(msg)
    wanted = {name: without_remark(one) if isinstance(one, str) else one for name, one in expect.items()}
    return [Mismatch(name, one, found[name]) for name, one in wanted.items() if one != found[name]]


WHOLE = (
    Whole("read VARIABLE", "Its program reads a variable.", r"read (?P<name>[A-Z][A-Z0-9_]*)", starts),
    Whole("job starts, run", "Its program looks at all that it finds.", r"(?:the )?job (?:starts|runs)|run", starts),
    Whole(
        "attempt NUMBER writes FILE and fails; attempt NUMBER lists its workdir [on the same worker]",
        "One attempt looks for what another left.",
        (
            r"attempt (?P<first>\d+) writes (?:\./)?(?P<file>[\w.-]+) and fails[;,] (?:then )?"
            r"attempt (?P<second>\d+) lists its work ?dir(?:ectory)?(?: on the same worker)?"
        ),
        lists,
    ),
    Whole(
        "attempt NUMBER fails",
        "An attempt fails that had ports.",
        r"attempt (?P<attempt>\d+) fails",
        ports,
        frozenset({"ports"}),
    ),
)
"""By what a case says happens, to real programs."""
