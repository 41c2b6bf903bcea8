"""Checks BEP-1030's promotions: what the runs' statuses make of their attempt."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.domain.lifecycle import PROMOTIONS, AttemptPromotion, AttemptStatus, Match, RunStatus
from holdfast.domain.lifecycle.engine import promotes
from holdfast.domain.record import evolve
from tools.cases.prose import before_upstream
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from tools.cases.results import Case

_GIVEN = re.compile(r"session ([A-Z]+)(?: with|,)? kernels? (?:\[([A-Z, ]+)\]|([A-Z]+))")
_TO = re.compile(r"^(?:session )?-> ([A-Z]+)")
_NEXT = re.compile(r"next (\w+) -> ([A-Z]+)")
_OVER = re.compile(r"(ALL|ANY|NOT_ANY) over S: (.+)")
_IN, _OUT = RunStatus.RUNNING, RunStatus.PENDING
_SAMPLE = re.compile(r"(one|some|any|none|no|all|every|both)(?: kernels?| is| are)* (not in|in|outside(?: of)?) s")
_ROWS = {row.name: row for row in PROMOTIONS}


def check(case: Case) -> list[Mismatch]:
    """Check a promotion, or a way of matching."""
    if over := _OVER.match(case["given"]):
        return _check_match(Match(over[1].lower()), over[2], case["expect"])
    if "zero kernels" in case["given"] or "no kernels" in case["given"]:
        return _check_without_runs(case)
    given = _GIVEN.search(case["given"])
    row = next((row for name, row in _ROWS.items() if case["when"].startswith(name)), None)
    if given is None or row is None:
        msg = "is about hooks and agents of Backend.AI (its front door is not built yet), not a promotion"
        raise Skip(msg)
    status = AttemptStatus(given[1])
    runs = [RunStatus(word) for word in re.findall(r"[A-Z]+", given[2] or given[3])]
    return _check_promotion(row, status, runs, before_upstream(case["expect"]))


def _check_promotion(
    row: AttemptPromotion, status: AttemptStatus, runs: list[RunStatus], expect: str
) -> list[Mismatch]:
    to = _TO.match(expect)
    if to is None and not expect.startswith("no change"):
        msg = "its prose names no status that is expected"
        raise Skip(msg)
    after = _promoted(row, status, runs)
    expected = AttemptStatus(to[1]) if to else status
    mismatches = [] if after is expected else [Mismatch(row.name, expected.value, after.value)]
    if following := _NEXT.search(expect):
        last = _promoted(_ROWS[following[1]], after, runs)
        if last != following[2]:
            mismatches.append(Mismatch(following[1], following[2], last.value))
    return mismatches


def _promoted(row: AttemptPromotion, status: AttemptStatus, runs: list[RunStatus]) -> AttemptStatus:
    return row.success if status in row.targets and promotes(row, runs) else status


def _check_without_runs(case: Case) -> list[Mismatch]:
    if not case["expect"].startswith("no promotion"):
        msg = "its prose names no outcome that is expected"
        raise Skip(msg)
    promoting = [match.value for match in Match if promotes(evolve(PROMOTIONS[0], match=match), [])]
    return [Mismatch("matches that promote without runs", [], promoting)] if promoting else []


def _check_match(match: Match, samples: str, expect: str) -> list[Mismatch]:
    row = evolve(PROMOTIONS[0], match=match, check=frozenset({_IN}))
    names = [sample.strip().lower() for sample in samples.split("/")]
    answers = re.findall(r"true|false", expect)
    statuses = [_sample(name) for name in names]
    if len(names) != len(answers):
        msg = "its prose names other samples than answers"
        raise Skip(msg)
    got = [str(promotes(row, sample)).lower() for sample in statuses]
    return [Mismatch(f"{match} over {names}", answers, got)] if got != answers else []


def _sample(words: str) -> tuple[RunStatus, ...]:
    """Make two runs as the words say: ``one in s``, ``none in s``, ``all in s``, ``one not in s``."""
    found = _SAMPLE.search(words)
    if found is None:
        msg = "its prose names samples that no checker knows"
        raise Skip(msg)
    if found[1] in {"none", "no"}:
        return (_OUT, _OUT)
    if found[1] in {"all", "every", "both"}:
        return (_IN, _IN) if found[2] == "in" else (_OUT, _OUT)
    return (_IN, _OUT)
