"""Checks Fluster's cases of several jobs or workers: placing, gangs, workers that come back, idle queues."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.domain.job import Resources
from holdfast.ports.engine import RunPhase, StopReason
from tools.cases.fluster_story import FINISHED, LONG_S, MEMORY
from tools.cases.fluster_table import Whole
from tools.cases.fluster_world import GRACE_S, LOST, FlusterWorld, exit_of
from tools.cases.results import Mismatch, Skip, differences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.cases.results import Case

_TICK_S = 0.5


def _known(given: Mapping[str, Any], *names: str) -> None:
    if unknown := given.keys() - {*names}:
        msg = f"not understood: given {', '.join(sorted(unknown))}"
        raise Skip(msg)


def _workers(**cpus: float) -> FlusterWorld:
    return FlusterWorld({name: Resources(round(cpu * 1000), MEMORY, 0) for name, cpu in cpus.items()})


def _compared(expect: Mapping[str, Any], got: Mapping[str, object]) -> list[Mismatch]:
    wanted = {name: value for name, value in expect.items() if name != "why"}
    if unknown := wanted.keys() - got.keys():
        msg = f"not understood: expects {', '.join(sorted(unknown))}"
        raise Skip(msg)
    return differences(wanted, got)


def find_assignments(case: Case, _: re.Match[str]) -> list[Mismatch]:
    """Place what waits on what there is."""
    given = case["given"]
    _known(given, "worker_cpu", "workers_cpu", "queue", "running_cpu", "job_cpu", "workers")
    health = dict(reversed(each.split(" ")) for each in given.get("workers", ()))
    count = len(health) if "workers" in given else 1
    cpus = given.get("workers_cpu") or [given.get("worker_cpu", 4)] * count
    world = _workers(**{f"w{place}": cpu for place, cpu in enumerate(cpus, 1)})
    if health.keys() - world.workers.keys() or {*health.values()} - {"healthy", "unhealthy"}:
        msg = f"not understood: given workers {given['workers']!r}"
        raise Skip(msg)
    for name, word in health.items():
        if word == "unhealthy":
            world.workers[name].lost.add(name)
    if "running_cpu" in given:
        world.submit("before", resources={"cpu": given["running_cpu"]})
    world.settle()
    before = len(world.runs)
    queue = given.get("queue") or [given.get("job_cpu", 1)]
    names = {world.submit(f"j{place}", resources={"cpu": cpu}): f"j{place}" for place, cpu in enumerate(queue, 1)}
    world.settle()
    return _placed(case["expect"], names, [(order.job_id, order.node) for order in world.runs[before:]])


def _placed(expect: Mapping[str, Any], names: Mapping[str, str], placed: Sequence[tuple[str, str]]) -> list[Mismatch]:
    """Compare which jobs were placed, and where."""
    nodes, there = [node for _, node in placed], [names[job] for job, _ in placed]
    listed = isinstance(expect.get("assigned", expect.get("assignments")), list)
    got: dict[str, object] = {
        **dict.fromkeys(("assigned", "assignments"), there if listed else len(placed)),
        "workers": sorted(set(nodes)),
        "assigned_to": nodes[0] if nodes else None,
        "skipped": [name for name in names.values() if name not in there],
        "timed_out_jobs": [],
    }
    return _compared(expect, got)


_WAITING = re.compile(
    r"(?P<name>\w+) "
    r"(?:(?:is )?(?:in back-?off|waiting(?: for retry)?|delayed)? ?(?:until|ready at) (?P<until>\d+)(?: ?ms)?"
    r"|(?:is )?(?:ready|PENDING|free))"
)


def passes_over(case: Case, match: re.Match[str]) -> list[Mismatch]:
    """Place what waits at an instant, of which some may not be run again yet."""
    given = case["given"]
    _known(given, "queue", "worker_cpu")
    waiting = [_WAITING.fullmatch(str(one)) for one in given["queue"]]
    now_s = int(match["now"]) / 1000
    world = _workers(w1=given.get("worker_cpu", 4))
    names: dict[str, str] = {}
    for one in (one for one in waiting if one is not None and one["until"]):
        wait_ms = int(one["until"]) - round(world.clock.now() * 1000)
        retry = {"max_retries_failure": 1, "initial_retry_delay_ms": wait_ms, "max_retry_delay_ms": wait_ms}
        job = world.submit(one["name"], retry)
        names[job] = one["name"]
        world.settle()
        world.end(job, exit_of(1))
        world.settle()
    if None in waiting or world.clock.now() > now_s:
        msg = f"not understood: given a queue of {given['queue']!r}"
        raise Skip(msg)
    world.close()
    world.run_to(now_s)
    names |= {world.submit(one["name"]): one["name"] for one in waiting if one is not None and not one["until"]}
    before = len(world.runs)
    world.open()
    world.settle()
    return _placed(case["expect"], names, [(order.job_id, order.node) for order in world.runs[before:]])


def gang_fails(case: Case, match: re.Match[str]) -> list[Mismatch]:
    """Fail one of a gang's members, which have one budget together; the members of the case have equal ones."""
    given, expect = case["given"], case["expect"]
    retry, size = _gang(given)
    world = _workers(**{f"w{place}": 4 for place in range(1, size + 1)})
    job = world.submit("gang", retry, resources={"replicas": size, "cpu": 4})
    world.settle()
    before = len(world.started(job))
    world.end(job, LOST if match.groupdict().get("kind") == "worker" else exit_of(1), rank=1)
    world.run_to(world.clock.now() + GRACE_S, enough=lambda: world.status(job)["state"] != "RUNNING")
    told = world.status(job)
    world.run_to(world.clock.now() + LONG_S, enough=lambda: len(world.started(job)) > before)
    again = len(world.started(job)) - before
    lost, failed = told["preemption_count"], told["failure_count"]
    once = failed + lost == 1
    got: dict[str, object] = {
        "retried": again if isinstance(expect.get("retried"), int) else [],
        "states": f"{'both' if size == _PAIR else 'all'} {told['state']}",
        "preemption_counts": [lost] * size,
        "failure_counts": [failed] * size,
        "member": "charged once" if once else told,
        "siblings": "re-queued, attempts COSCHED_FAILED, counters unchanged" if once and again == size else told,
    }
    return _compared(expect, got)


_PAIR = 2


def _gang(given: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    _known(given, "both.max_retries_preemption", "both.max_retries_failure", "both", "gang_of", "budget")
    retry = {name.partition(".")[2]: value for name, value in given.items() if name.startswith("both.")}
    if given.get("both", "RUNNING") != "RUNNING" or given.get("budget", "left") != "left":
        msg = "not understood: the state or the budget of the gang"
        raise Skip(msg)
    return retry or {"max_retries_failure": 1, "max_retries_preemption": 1}, given.get("gang_of", _PAIR)


_BOUNCED = re.compile(r"bounced, (\d+) of (\d+) old attempts not yet confirmed stopped")


def gang_stops(case: Case, _: re.Match[str]) -> list[Mismatch]:
    """Have a gang that failed wait for its members to stop; nothing of it is placed where they still are."""
    given = case["given"]
    _known(given, "gang")
    match = _BOUNCED.fullmatch(given["gang"])
    if match is None or int(match[1]) != int(match[2]) - 1:
        msg = f"not understood: given a gang {given['gang']!r}"
        raise Skip(msg)
    size = int(match[2])
    world = _workers(**{f"w{place}": 4 for place in range(1, size + 1)})
    world.term_delay_s = GRACE_S - 1
    retry = {"max_retries_failure": 1, "initial_retry_delay_ms": 0}
    job = world.submit("gang", retry, resources={"replicas": size, "cpu": 4})
    world.settle()
    world.end(job, exit_of(1))
    world.run_to(world.clock.now() + GRACE_S - 2)
    early = len(world.started(job)) > size
    world.run_to(world.clock.now() + LONG_S, enough=lambda: len(world.started(job)) > size)
    late = len(world.started(job)) > size
    return [*_compared(case["expect"], {"old slice reused": early}), *_unless(late, "it is placed once they stopped")]


def _unless(holds: bool, what: str) -> list[Mismatch]:  # noqa: FBT001 - a fact
    return [] if holds else [Mismatch(what, "so", "not so")]


_RUNNING_ON = re.compile(r"RUNNING on (w\d+)")


def waits_for_the_end(case: Case, match: re.Match[str]) -> list[Mismatch]:
    """End a job whose program takes its time, with another waiting for its place."""
    given, expect = case["given"], case["expect"]
    _known(given, "state", "cpu", "worker_cpu")
    worker = _RUNNING_ON.fullmatch(str(given["state"]))
    if worker is None:
        msg = f"not understood: given the state {given['state']!r}"
        raise Skip(msg)
    world = _workers(**{worker[1]: given["worker_cpu"]})
    world.term_delay_s = GRACE_S / 2
    first = world.submit("first", resources={"cpu": given["cpu"]})
    world.settle()
    world.terminate(first)
    second = world.submit("second", resources={"cpu": int(match["cpu"])})
    world.settle()
    told = any(reason is StopReason.USER for _, _, reason in world.workers[worker[1]].stops)
    early = bool(world.started(second))
    world.run_to(world.clock.now() + LONG_S, enough=lambda: bool(world.started(second)))
    late = world.status(first)["state"] == "KILLED" and bool(world.started(second))
    wanted = str(expect.get("second_job_starts", ""))
    after = f"only after {worker[1]} confirms"
    starts = wanted if late and not early and wanted.startswith(after) else f"at once: {early}"
    return _compared(expect, {"worker_receives_stop": told, "second_job_starts": starts})


def kills(case: Case, _: re.Match[str]) -> list[Mismatch]:
    """End a program that ignores SIGTERM, and see when it is gone."""
    given, expect = case["given"], case["expect"]
    _known(given, "term_timeout_ms", "process")
    ignores = _IGNORES.get(str(given.get("process", "exits on SIGTERM")))
    if ignores is None or given.get("term_timeout_ms", GRACE_S * 1000) != GRACE_S * 1000:
        msg = f"not understood: given {given!r}"
        raise Skip(msg)
    world = _workers(w1=4)
    world.term_delay_s = LONG_S if ignores else 0.0
    job = world.submit("j1")
    world.settle()
    began = world.clock.now()
    world.terminate(job)
    world.run_to(began + GRACE_S - 0.1)
    alive = world.status(job)["state"] == "RUNNING"
    world.run_to(began + LONG_S, enough=lambda: world.status(job)["state"] in FINISHED)
    took = world.clock.now() - began
    wanted, killed = str(expect.get("sequence", "")), alive and took <= GRACE_S + 1
    gentle = re.fullmatch(r"SIGTERM(?:,? (?:only|no SIGKILL|exits?\b.*))?", wanted) is not None and not alive
    sequence = wanted if gentle or (killed and wanted == _IN_TURN) else f"gone after {took} s"
    return _compared(expect, {"sequence": sequence, "state": world.status(job)["state"]})


_IN_TURN = "SIGTERM, wait up to 5 s, SIGKILL"
_IGNORES = {"ignores SIGTERM": True, "exits on SIGTERM": False, "handles SIGTERM": False}


def comes_back(case: Case, _: re.Match[str]) -> list[Mismatch]:
    """Lose a worker for a while, on which the program goes on; it comes back when the job runs elsewhere."""
    given, expect = case["given"], case["expect"]
    _known(given, "w1", "RunJob")
    if str(given.get("w1", _RETURNS)) != _RETURNS or str(given.get("RunJob", _DELIVERED)) != _DELIVERED:
        msg = f"not understood: given {given!r}"
        raise Skip(msg)
    world = FlusterWorld({name: Resources(4000, MEMORY, 0) for name in ("w1", "w2")}, timeout_s=30.0)
    world.only("w1")
    world.term_delay_s = GRACE_S / 2
    job = world.submit("j1", resources={"cpu": 4})
    world.settle()
    (old,) = world.started(job)
    world.wires["w1"].cut = True
    world.only("w2")
    while len(world.started(job)) == 1:
        world.run_to(world.clock.now() + 5)
    world.settle()
    before, new = world.status(job), world.started(job)[-1]
    world.wires["w1"].cut = False
    world.open()
    world.settle()
    seen = world.workers["w1"].observe().get(old.uid)
    gone = seen is None or seen.phase is RunPhase.FINISHED
    other = world.submit("other", resources={"cpu": 4})
    world.settle()
    early = bool(world.started(other)) and not gone
    world.run_to(world.clock.now() + GRACE_S)
    stopped = old.uid in {uid for uid, _, _ in world.workers["w1"].stops}
    world.report("w1", old.uid, exit_of(0))
    same = {**world.status(job), "status_message": ""} == {**before, "status_message": ""}
    got = {
        "new_attempt_id": "differs" if (new.uid, new.attempt) != (old.uid, old.attempt) else "same",
        "w1_attempt": "told to stop; its reports ignored" if stopped and same else world.status(job),
        "w1_attempt_0": "stopped" if stopped else "goes on",
        "job": "unchanged (attempt 1)" if same and before["current_attempt_id"] == 1 else world.status(job),
        "w1_capacity": "offered at once" if early else "not offered until attempt 0 is gone",
    }
    return _compared(expect, got)


_RETURNS = "timed out, its job now attempt 1 on w2; w1 returns still running attempt 0"
_DELIVERED = "times out at the controller but the worker accepted it"
_EARLIEST = re.compile(r"only jobs in back-off, earliest ready in (\d+(?:\.\d+)?) s")


def idles(case: Case, _: re.Match[str]) -> list[Mismatch]:
    """Let nothing wait but what is in back-off, and count how often anything is looked at until it is due."""
    given, expect = case["given"], case["expect"]
    _known(given, "queue", "tick_s")
    match = _EARLIEST.fullmatch(str(given["queue"]))
    if match is None:
        msg = f"not understood: given a queue of {given['queue']!r}"
        raise Skip(msg)
    world, ready_s = _workers(w1=4), float(match[1])
    retry = {"max_retries_failure": 1, "initial_retry_delay_ms": round(ready_s * 1000)}
    job = world.submit("j1", retry)
    world.settle()
    world.end(job, exit_of(1))
    world.settle()
    began, looks = world.clock.now(), world.looks
    world.run_to(began + LONG_S, enough=lambda: len(world.started(job)) > 1)
    late = max(0.0, world.clock.now() - began - ready_s)
    within = float(expect["dispatched_within_s_of_ready"])
    got = {
        "dispatched_within_s_of_ready": max(within, late),
        "busy_loop": world.looks - looks > ready_s / given.get("tick_s", _TICK_S) + _FEW,
    }
    return _compared(expect, got)


_FEW = 4
WHOLE = (
    Whole(
        "find_assignments",
        "What waits is placed on the workers that there are.",
        r"find_assignments(?:\(now\))?",
        find_assignments,
        frozenset({"queue", "workers", "job_cpu"}),
    ),
    Whole(
        "find_assignments at MS",
        "The same, where some may not be run again yet.",
        r"find_assignments at (?P<now>\d+)",
        passes_over,
        frozenset({"queue"}),
    ),
    Whole(
        "gang job failure, gang worker failure, one member fails",
        "A member of a gang fails.",
        r"gang (?P<kind>job|worker) failure|gang fails|one member fails",
        gang_fails,
    ),
    Whole("schedule", "A gang that failed is placed again.", r"schedule", gang_stops),
    Whole(
        "terminate; then submit another NUMBER-CPU job",
        "A job is ended whose place another waits for.",
        r"terminate; then submit another (?P<cpu>\d+)-CPU job",
        waits_for_the_end,
    ),
    Whole("kill", "A job is ended whose program heeds SIGTERM or does not.", r"kill", kills),
    Whole(
        "w1 heartbeats again, job dispatched again to w2",
        "A worker that was away comes back.",
        r"w1 heartbeats again|job dispatched again to w2",
        comes_back,
        frozenset({"w1", "RunJob"}),
    ),
    Whole("idle loop", "Nothing waits but what may not be run yet.", r"idle loop", idles, frozenset({"queue"})),
)
"""By what a case says happens."""
