"""Checks Fluster's cases of what is listed, and of what its client sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.api.connect.plain import plain
from holdfast.domain.job import Resources
from holdfast.fluster import RetryConfig
from tools.cases.fluster_story import MEMORY
from tools.cases.fluster_table import Whole
from tools.cases.fluster_tree import grown, read_tree
from tools.cases.fluster_world import FlusterWorld
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from tools.cases.results import Case

_ROOM = Resources(64_000, MEMORY, 0)


def jobs(case: Case, _: re.Match[str]) -> list[Mismatch]:
    """List jobs: names, or states by names."""
    given = _only(case["given"], "jobs", default={})
    states = read_tree(given) if isinstance(given, str) else dict.fromkeys(given, "RUNNING")
    if isinstance(given, dict):
        states = dict(given)
    world = FlusterWorld({"w1": _ROOM})
    grown(world, states)
    found = {one["job_id"]: one["state"] for one in world.door.listed()}
    return _compared(case, {"job_ids": sorted(found), "states": found, **_counts(len(found), "jobs"), **found})


def workers(case: Case, _: re.Match[str]) -> list[Mismatch]:
    """List workers, of which some take no work."""
    pairs = (str(one).partition(" ") for one in _only(case["given"], "workers", default=[]))
    health = {name: word for word, _, name in pairs}
    if {*health.values()} - {"healthy", "unhealthy"}:
        msg = f"not understood: given workers {case['given']['workers']!r}"
        raise Skip(msg)
    world = FlusterWorld(dict.fromkeys(health, _ROOM))
    for name in (name for name, word in health.items() if word == "unhealthy"):
        world.cordon(name)
    found = world.door.workers()
    told = {name: one.get("healthy", False) for name, one in found.items()}
    each = {name: {"healthy": healthy} for name, healthy in told.items()}
    return _compared(case, {"worker_ids": sorted(found), "healthy": told, **_counts(len(found), "workers"), **each})


def sends(case: Case, _: re.Match[str]) -> list[Mismatch]:
    """Read what the client sends of a configuration."""
    given = case["given"]
    given = given.get("RetryConfig", given.get("retry", given))
    try:
        sent = plain(RetryConfig(**given).message())
    except TypeError as error:
        msg = f"not understood: {error}"
        raise Skip(msg) from error
    lists: dict[str, object] = {"retry_on_exit_codes": [], "no_retry_on_exit_codes": []}
    told = {**lists, **sent}
    return _compared(case, {**told, **{f"retry.{name}": value for name, value in told.items()}})


def _only(given: Mapping[str, Any], name: str, *, default: object) -> Any:  # noqa: ANN401 - of a case
    if given.keys() - {name}:
        msg = f"not understood: given {', '.join(sorted(given.keys() - {name}))}"
        raise Skip(msg)
    return given.get(name, default)


def _counts(count: int, what: str) -> dict[str, object]:
    return {"count": count, f"len_{what}": count, what: count}


def _compared(case: Case, found: Mapping[str, object]) -> list[Mismatch]:
    expect = {name: wanted for name, wanted in case["expect"].items() if name != "why"}
    if unknown := expect.keys() - found.keys():
        msg = f"not understood: expects {', '.join(sorted(unknown))}"
        raise Skip(msg)
    return [Mismatch(name, wanted, found[name]) for name, wanted in expect.items() if wanted != found[name]]


WHOLE = (
    Whole("ListJobs", "Jobs are listed.", r"ListJobs|list_jobs|list jobs", jobs),
    Whole("ListWorkers", "Workers are listed.", r"ListWorkers|list_workers|list workers", workers),
    Whole("client.submit(...)", "The client sends a configuration.", r"client\.submit\(.*\)|to_proto(?:\(\))?", sends),
)
"""By what a case says happens."""
