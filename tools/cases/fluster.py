"""Checks Fluster's cases: a job is launched as one is given, what the case says happens to it, and it is looked at."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.cases import fluster_environment as environment
from tools.cases import fluster_lists as lists
from tools.cases import fluster_ports as ports
from tools.cases import fluster_several as several
from tools.cases import fluster_tree as tree
from tools.cases.fluster_deviations import deviations_of
from tools.cases.fluster_door import doors_closed
from tools.cases.fluster_expect import IGNORED, compare
from tools.cases.fluster_given import read_given
from tools.cases.fluster_phrases import carry_out
from tools.cases.fluster_story import FINISHED, Story
from tools.cases.fluster_table import Whole
from tools.cases.fluster_world import LOST, exit_of
from tools.cases.results import Deviates, Mismatch, Skip

if TYPE_CHECKING:
    from tools.cases.results import Case


def check(case: Case) -> list[Mismatch]:
    """Check one case; what is different on purpose is left out, and the rest has to be as it says.

    Raises:
        Skip: Something of it is not understood.
        Deviates: It comes out differently on purpose.
    """
    with doors_closed():
        try:
            return _judged(case)
        except (TypeError, ValueError, KeyError, AttributeError) as error:  # a value of another kind than is read
            msg = f"not understood: {type(error).__name__}: {error}"
            raise Skip(msg) from error


def _judged(case: Case) -> list[Mismatch]:
    different = deviations_of(case)
    if not different:
        return _checked(case)
    reason = "; ".join(one.reason for one in different)
    fields = frozenset[str]().union(*(one.fields for one in different))
    rest = {name: value for name, value in case["expect"].items() if name not in fields}
    if all(one.fields for one in different) and rest and (mismatches := _checked({**case, "expect": rest})):
        return mismatches
    raise Deviates(reason)


def _checked(case: Case) -> list[Mismatch]:
    when = case["when"]
    if not case["expect"].keys() - IGNORED:
        msg = "not understood: it expects nothing"
        raise Skip(msg)
    for whole in WHOLE if isinstance(when, str) else ():
        match = whole.match(case, when)
        if match is not None:
            return whole.check(case, match)
    story = Story(read_given(case["given"]))
    carry_out(story, when)
    expect = dict(case["expect"])
    nexts = [(name, expect.pop(name)) for name in list(expect) if name in _NEXT]
    found = compare(story, expect)
    for place, (name, wanted) in enumerate(nexts):
        if place:
            story = Story(read_given(case["given"]))
            carry_out(story, when)
        found += _next(story, name, wanted)
    return found


_NEXT = {"next_job_failure": exit_of(1), "next_worker_failure": LOST}


def _next(story: Story, name: str, wanted: str) -> list[Mismatch]:
    """Let one thing more happen."""
    match = re.fullmatch(r"([A-Z_]+) terminal", wanted)
    if match is None:
        msg = f"not understood: expects {name!r} to be {wanted!r}"
        raise Skip(msg)
    story.fail(_NEXT[name])
    got = story.status["state"]
    return [] if got == match[1] and got in FINISHED else [Mismatch(name, wanted, got)]


_RETRIED = re.compile(
    r"(?P<no>no retry|not retried|no\b|FAILED|EXCEEDED_RETRY_LIMIT|False)|retry|retried|yes\b|PENDING|SHOULD_RETRY|True"
)


def _each_code(case: Case, match: re.Match[str]) -> list[Mismatch]:
    """End a job of its own with each exit code."""
    codes = [int(code) for code in re.split(r" ?[/,] ?", match["codes"])]
    found, expect = [], case["expect"]
    for code in codes:
        story = Story(read_given(case["given"]))
        story.fail(exit_of(code))
        wanted = str(expect.get(str(code), expect.get("retry", "")))
        said = _RETRIED.match(wanted)
        if said is None:
            msg = f"not understood: expects of exit code {code} {wanted!r}"
            raise Skip(msg)
        got = story.status["state"] not in FINISHED
        if got is (said["no"] is not None):
            found.append(Mismatch(f"exit {code}", wanted, story.status))
    return found


def _launches(case: Case, _: re.Match[str]) -> list[Mismatch]:
    """Launch each configuration."""
    given, found, expect = read_given(case["given"]), [], case["expect"]
    each = expect.get("each")
    if each is not None and each != "INVALID_ARGUMENT, nothing queued":
        msg = f"not understood: expects each to be {each!r}"
        raise Skip(msg)
    for retry in given.retries or [given.retry]:
        given.retry = dict(retry or {})
        story = Story(given)
        if each is None:
            found += compare(story, expect)
        elif story.refused is None or story.refused.code != "INVALID_ARGUMENT" or story.world.door.listed():
            found.append(Mismatch(f"submit {retry}", each, story.refused or "it was queued"))
    return found


WHOLE = (
    Whole(
        "exits CODE / CODE / CODE",
        "Each of several jobs ends with one of these exit codes.",
        r"exits? (?P<codes>\d+(?: ?[/,] ?\d+)+)",
        _each_code,
    ),
    Whole("submit, submit each", "One is launched, or one of each configuration.", r"submit(?: each)?", _launches),
    *several.WHOLE,
    *tree.WHOLE,
    *environment.WHOLE,
    *ports.WHOLE,
    *lists.WHOLE,
)
"""What is all that happens in a case; the first that fits counts, before the phrases of which there can be several."""
