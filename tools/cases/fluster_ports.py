"""Checks Fluster's cases of port numbers: how many there are, and that no two runs have the same one."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from holdfast.engines.process.shim.ports import Ports
from tools.cases.fluster_given import NUMBER, number_of
from tools.cases.fluster_table import Whole
from tools.cases.prose import without_remark
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from tools.cases.results import Case

ONLY_ONE = (45_017, 45_018)
_TAKE = re.compile(rf"(?:allocate )?({NUMBER})(?: more| again)?(?: ports?)?")
_GIVE = re.compile(rf"release(?: (?:the first )?(?P<count>{NUMBER})(?: of them)?| all(?: of them)?| them| it|)")
_PLACES = ("first", "second", "third", "fourth", "fifth", "sixth")
_RAISES = re.compile(r"(?:\w*Error:? )?'?(?P<message>[^']*)'?")


class _Numbers:
    """The numbers of a range as runs take them, each a run of its own, and give them back."""

    def __init__(self, first: int, last: int) -> None:
        self._ports, self._range, self._runs = Ports(first, last), range(first, last), 0
        self.taken: list[list[int]] = []
        """By step."""
        self.each: list[int | str] = []
        """In turn, or why there is none."""
        self._held: dict[int, str] = {}

    def take(self, count: int) -> None:
        """Have so many runs take one each."""
        step: list[int] = []
        self.taken.append(step)
        for _ in range(count):
            self._runs += 1
            run: Any = SimpleNamespace(uid=f"run-{self._runs}", order={"ports": ["HTTP"]})
            try:
                number = int(self._ports.environment(run)["HOLDFAST_PORT_HTTP"])
            except OSError as error:
                self.each.append(str(error))
                continue
            self._held[number] = run.uid
            self.each.append(number)
            step.append(number)

    def give_back(self, count: int | None) -> None:
        """Have the runs end that took one first."""
        for number in [*self._held][:count]:
            self._ports.release(self._held.pop(number))

    def found(self) -> dict[str, object]:
        """Say what came of it."""
        numbers = [one for one in self.each if isinstance(one, int)]
        last, before = self.taken[-1], [one for step in self.taken[:-1] for one in step]
        distinct = all(len(step) == len({*step}) for step in self.taken)
        within = all(one in self._range for one in numbers)
        return {
            **dict(zip(_PLACES, self.each, strict=False)),
            **dict.fromkeys(("count", "allocated"), len(numbers)),
            **dict.fromkeys(("unique", "all_unique", "distinct"), distinct and (len(last) == len({*last}))),
            **dict.fromkeys(("in_range", "within_range"), within),
            "overlap": sorted({*last} & {*before}),
            **dict.fromkeys(("reused", "same_ports"), bool({*last} & {*before})),
        }


def is_given_back() -> bool:
    """Whether a number is there for another run once the one that had it has ended."""
    numbers = _Numbers(*ONLY_ONE)
    numbers.take(2)
    numbers.give_back(None)
    numbers.take(1)
    return [isinstance(one, int) for one in numbers.each] == [True, False, True]


def allocate(case: Case, _: re.Match[str]) -> list[Mismatch]:
    """Take numbers and give them back."""
    given, expect = case["given"], case["expect"]
    span = given.get("range", given.get("port_range"))
    if given.keys() - {"range", "port_range"} or not isinstance(span, list) or len(span) != 2:  # noqa: PLR2004 - ends
        msg = f"not understood: given {given!r}"
        raise Skip(msg)
    numbers = _Numbers(*span)
    for step in re.split(r",? then |, |; ", case["when"]):
        taken, given_back = _TAKE.fullmatch(step), _GIVE.fullmatch(step)
        if taken is not None:
            numbers.take(number_of(taken[1]))
        elif given_back is not None:
            numbers.give_back(number_of(given_back["count"]) if given_back["count"] else None)
        else:
            msg = f"not understood: when {step!r}"
            raise Skip(msg)
    found = numbers.found()
    if unknown := expect.keys() - found.keys() - {"why"}:
        msg = f"not understood: expects {', '.join(sorted(unknown))}"
        raise Skip(msg)
    return [
        Mismatch(name, wanted, found[name])
        for name, wanted in expect.items()
        if name != "why" and not _agrees(wanted, found[name])
    ]


def _agrees(wanted: object, got: object) -> bool:
    """Compare; an error is told by its words, whatever it is an error of."""
    if not isinstance(wanted, str) or not isinstance(got, str):
        return wanted == got
    match = _RAISES.fullmatch(without_remark(wanted))
    return match is not None and match["message"].lower() in got.lower()


WHOLE = (
    Whole(
        "allocate NUMBER, then NUMBER, release them, allocate NUMBER",
        "Runs take port numbers, and give them back.",
        rf"allocate {NUMBER}\b.*",
        allocate,
    ),
)
"""By what a case says happens."""
