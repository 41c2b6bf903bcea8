"""Checks Fluster's cases of parents and children: who ends with whom, and in which order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.domain.job import Resources
from tools.cases.fluster_story import FINISHED, MEMORY
from tools.cases.fluster_table import Whole
from tools.cases.fluster_world import FlusterWorld, exit_of
from tools.cases.prose import without_remark
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tools.cases.results import Case

_ROOM = Resources(64_000, MEMORY, 0)
_PART = re.compile(r"(?P<names>[^ ,]+(?:(?: -> |, )[^ ,]+)*?),?(?: all| both| is| are)? (?P<state>[A-Z_]+)")
_ORDER = re.compile(r", then |, | then ")
_STEPS = {"FAILED": 1, "SUCCEEDED": 0}


def terminate(case: Case, match: re.Match[str]) -> list[Mismatch]:
    """Terminate a job with others below it and beside it."""
    return _after(case, match["name"], lambda world, _: world.door.terminate(match["name"]))


def ends(case: Case, match: re.Match[str]) -> list[Mismatch]:
    """Let a job end by itself that has others below it."""
    code = int(match["code"] or 1) if match["fails"] else 0
    return _after(case, match["name"], lambda world, job: world.end(job, exit_of(code)))


def _after(case: Case, name: str, act: Callable[[FlusterWorld, str], None]) -> list[Mismatch]:
    given, expect = case["given"], case["expect"]
    if given.keys() != {"tree"}:
        msg = f"not understood: given {', '.join(sorted(given))}"
        raise Skip(msg)
    world = FlusterWorld({"w1": _ROOM})
    jobs = grown(world, read_tree(given["tree"]))
    if name not in jobs:
        msg = f"not understood: there is no job {name!r}"
        raise Skip(msg)
    before = {name: world.status(job)["state"] for name, job in jobs.items()}
    act(world, jobs[name])
    world.settle()
    world.run_to(world.clock.now() + 60)
    stops = [uid for uid, _, _ in world.workers["w1"].stops]
    ended = sorted((stops.index(order.uid), order.job_id) for order in world.runs if order.uid in stops)
    names = {job: name for name, job in jobs.items()}
    states = {name: world.status(job)["state"] for name, job in jobs.items()}
    return _compared(expect, [names[job] for _, job in ended], states, before)


def read_tree(text: str) -> dict[str, str]:
    """Read ``a -> a/b -> a/b/c, all RUNNING; a/d SUCCEEDED``: the states of jobs by their names, parents first.

    Raises:
        Skip: It says something else.
    """
    found: dict[str, str] = {}
    for part in re.split(r"; ?", text):
        match = _PART.fullmatch(part)
        if match is None or match["state"] not in {*FINISHED, "RUNNING", "PENDING"}:
            msg = f"not understood: given a tree {text!r}"
            raise Skip(msg)
        found |= dict.fromkeys(re.split(r" -> |, ", match["names"]), match["state"])
    return dict(sorted(found.items()))


def grown(world: FlusterWorld, tree: Mapping[str, str]) -> dict[str, str]:
    """Launch all, and let each come as far as it is given; returns their ids by their names.

    Raises:
        Skip: One cannot be so.
    """
    jobs: dict[str, str] = {}
    for name, state in sorted(tree.items(), key=lambda pair: pair[1] == "PENDING"):
        if state == "PENDING":
            world.close()
        jobs[name] = world.submit(name)
        world.settle()
        if state in _STEPS:
            world.end(jobs[name], exit_of(_STEPS[state]))
        elif state == "KILLED":
            world.door.terminate(name)
        world.settle()
        if world.status(jobs[name])["state"] != state:
            msg = f"not understood: {name} cannot be {state} before anything is done"
            raise Skip(msg)
    return jobs


def _compared(
    expect: Mapping[str, Any], order: list[str], states: Mapping[str, str], before: Mapping[str, str]
) -> list[Mismatch]:
    found = []
    for name, wanted in expect.items():
        text = without_remark(str(wanted))
        got: object
        if name == "why":
            continue
        if name in {"children", "descendants"}:
            name = "others"  # noqa: PLW2901 - by another name
        if name == "order":
            short = [one.rpartition("/")[2] for one in order]
            got = text if _ORDER.split(text) in (short, order) else order
        elif name == "others":
            others = {state for one, state in states.items() if one not in expect and before[one] not in FINISHED}
            got = text if others == {text} else states
        elif name in states:
            stays = text.partition("stays ")[2]
            got = text if states[name] == (stays or text) and (not stays or stays == before[name]) else states[name]
        else:
            msg = f"not understood: expects {name!r}"
            raise Skip(msg)
        if got != text:
            found.append(Mismatch(name, wanted, got))
    return found


WHOLE = (
    Whole(
        "terminate NAME",
        "A job is ended that has others below it and beside it.",
        r"(?:terminate|kill|cancel) (?P<name>[\w./-]+)",
        terminate,
        frozenset({"tree"}),
    ),
    Whole(
        "NAME SUCCEEDED, NAME fails",
        "One ends by itself that has others below it.",
        (
            r"(?P<name>[\w./-]+) (?:SUCCEEDED|succeeds|finishes|returns"
            r"|(?P<fails>FAILED|fails)(?: exit (?P<code>\d+))?)"
        ),
        ends,
        frozenset({"tree"}),
    ),
)
"""By what a case says happens."""
