"""What cases of Fluster's can expect: a table of names, each with how it is looked at in what became of a job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tools.cases.fluster_story import FINISHED, LONG_S
from tools.cases.fluster_waiting import ends
from tools.cases.fluster_world import LOST
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tools.cases.fluster_story import Story

Look = "Callable[[Story, Any], object]"
IGNORED = frozenset({"why"})
_REFUSALS = frozenset({"error", "message_contains", "error_contains"})
_RESULTS = {"SHOULD_RETRY", "EXCEEDED_RETRY_LIMIT"}


def compare(story: Story, expect: Mapping[str, Any]) -> list[Mismatch]:
    """Compare what became of a job with what a case expects.

    Raises:
        Skip: Something of it is not understood.
    """
    found = [Mismatch("what happens", "as the case says", surprise) for surprise in story.surprises]
    if story.refused is not None and not _REFUSALS & expect.keys():
        found.append(Mismatch("call", "it is answered", str(story.refused)))
    for name, wanted in expect.items():
        if name in IGNORED:
            continue
        got = _looked(story, name, wanted)
        if got != wanted:
            found.append(Mismatch(name, wanted, got))
    return found


def _looked(story: Story, name: str, wanted: Any) -> object:  # noqa: ANN401 - of a case
    if wanted == "unchanged" and name in _STATUS - {"state"}:
        return wanted if story.status.get(name) == story.before.get(name) else story.status.get(name)
    if name in LOOKS:
        return LOOKS[name](story, wanted)
    if match := re.fullmatch(r"attempts\[(\d+)\](?:\.(\w+))?", name):
        attempts = story.status["attempts"]
        listed = attempts[int(match[1])] if int(match[1]) < len(attempts) else {}
        return listed.get(match[2]) if match[2] else _fields(listed, wanted)
    if (match := re.fullmatch(rf"(?:after_)?({'|'.join(_PLACES)})", name)) and _place(match[1]) < len(story.seen):
        place = _place(match[1])
        return _fields(story.seen[place], wanted) if isinstance(wanted, dict) else _of_failure(place)(story, wanted)
    if match := re.fullmatch(r"lookup\('([^']+)'\)", name):
        return _looked_up(story, match[1], wanted)
    if name in story.at:
        return _fields(story.at[name], wanted) if isinstance(wanted, dict) else _assigned(story.at[name], wanted)
    msg = f"not understood: expects {name!r} to be {wanted!r}"
    raise Skip(msg)


_PLACES = ("first", "second", "third", "fourth", "fifth")


def _place(word: str) -> int:
    return _PLACES.index(word)


def _fields(told: Mapping[str, Any], wanted: Mapping[str, Any]) -> object:
    if unknown := wanted.keys() - _STATUS - told.keys():
        msg = f"not understood: expects {', '.join(sorted(unknown))}"
        raise Skip(msg)
    return {name: told.get(name) for name in wanted}


_STATUS = frozenset(
    {
        *("state", "exit_code", "error", "started_at_ms", "finished_at_ms", "worker_id", "current_attempt_id"),
        *("failure_count", "preemption_count", "max_retries_failure", "max_retries_preemption"),
        *("retry_available_at_ms", "attempt_id", "is_worker_failure"),
    }
)


def _assigned(told: Mapping[str, Any], wanted: str) -> object:
    word = re.match(r"assigned|skipped", wanted)
    if word is None:
        msg = f"not understood: expects {wanted!r}"
        raise Skip(msg)
    return wanted if told["assigned"] is (word[0] == "assigned") else told


def _field(name: str) -> Callable[[Story, Any], object]:
    return lambda story, _: story.status.get(name)


_STATE = re.compile(r"([A-Z_]+)(?: \(or dispatched\))?")


def _state(story: Story, wanted: str) -> object:
    got = story.status["state"]
    if wanted == "unchanged":
        same = {**story.status, "status_message": ""} == {**story.before, "status_message": ""}
        return wanted if same else story.status
    match = _STATE.fullmatch(wanted)
    if match is None:
        msg = f"not understood: expects the state {wanted!r}"
        raise Skip(msg)
    either = {match[1], "RUNNING"} if "dispatched" in wanted else {match[1]}
    return wanted if got in either else got


def _not_state(story: Story, wanted: str) -> object:
    got = story.status["state"]
    return f"it is {got}" if got == wanted.partition(" ")[0] else wanted


_CODE = re.compile(r"[A-Z]+(?:_[A-Z]+)+")


def _error(story: Story, wanted: str | None) -> object:
    got = story.status.get("error")
    if story.refused is not None or _CODE.fullmatch(wanted or ""):
        return None if story.refused is None else story.refused.code
    return wanted if wanted is not None and got is not None and wanted in got else got


def _said(story: Story, wanted: str) -> object:
    got = story.status.get("error") if story.refused is None else story.refused.message
    return wanted if got is not None and wanted in got else got


def _answering(story: Story, name: str) -> list[str]:
    """List where programs answer under a name."""
    return [one["address"] for one in story.world.door.endpoints(name) if one["name"] == name]


def _inserted(story: Story, wanted: str) -> object:
    words = {True: "not inserted", False: "inserted"}
    got = words[not story.world.door.endpoints("")]
    if wanted not in words.values():
        msg = f"not understood: expects the endpoint to be {wanted!r}"
        raise Skip(msg)
    return got


def _looked_up(story: Story, name: str, wanted: Any) -> object:  # noqa: ANN401 - of a case
    """Look up an endpoint; that of a new attempt is there once it registers, and no older one at any time."""
    got = _answering(story, name)
    if wanted in ("empty", "nothing", "NOT_FOUND"):
        return got or wanted
    if isinstance(wanted, list):
        return got
    if wanted != "only the new attempt's endpoint":
        msg = f"not understood: expects a lookup to find {wanted!r}"
        raise Skip(msg)
    story.register()
    return wanted if (got, _answering(story, name)) == ([], story.addresses[-1:]) else got


def _running_jobs(story: Story, wanted: Any) -> object:  # noqa: ANN401 - of a case
    """List what runs on the workers, as the door does."""
    workers = story.world.door.workers().values()
    running = sorted({name for worker in workers for name in worker.get("running_job_ids", ())})
    return wanted if wanted in ("empty", "none") and not running else running


def _attempts(story: Story, wanted: Any) -> object:  # noqa: ANN401 - of a case
    """Return the earlier attempts: how many there are, or what a case asks of each."""
    listed = story.status["attempts"]
    if isinstance(wanted, int) or len(listed) != len(wanted):
        return len(listed) if isinstance(wanted, int) else listed
    return [_fields(one, of_it) for one, of_it in zip(listed, wanted, strict=True)]


def _available_at(story: Story, wanted: Any) -> object:  # noqa: ANN401 - of a case
    """Return until when it waits: now, or before it was placed at instants that the case names."""
    placed = any(name.startswith("at_") for name in story.at)
    got = (story.seen[-1] if placed else story.status).get("retry_available_at_ms")
    if not isinstance(wanted, str):
        return got
    if wanted == "unchanged":
        return wanted if got == story.before.get("retry_available_at_ms") else got
    match = re.fullmatch(r"now\+(\d+)", wanted)
    if match is None:
        msg = f"not understood: expects retry_available_at_ms to be {wanted!r}"
        raise Skip(msg)
    failed_at = story.status["attempts"][-1]["finished_at_ms"]
    return wanted if got == failed_at + int(match[1]) else got


def _finished(story: Story, wanted: Any) -> object:  # noqa: ANN401 - of a case
    got = story.status.get("finished_at_ms")
    return wanted if wanted == "set" and got else got


def _attempt_finished(story: Story, wanted: str) -> object:
    if not wanted.startswith("set on the attempt"):
        msg = f"not understood: expects finished_at to be {wanted!r}"
        raise Skip(msg)
    attempts, state = story.status["attempts"], story.status["state"]
    sound = bool(attempts) and all(one["finished_at_ms"] for one in attempts) and state == "PENDING"
    return wanted if sound else attempts


def _result(told: Mapping[str, Any]) -> str:
    return "EXCEEDED_RETRY_LIMIT" if told["state"] in FINISHED else "SHOULD_RETRY"


def _of_failure(place: int) -> Callable[[Story, Any], object]:
    """Read ``SHOULD_RETRY, failure_count=1`` or ``FAILED, failure_count=2 (...)`` or ``retry`` of one failure."""

    def look(story: Story, wanted: str) -> object:
        told = story.seen[place]
        for part in re.sub(r" \(.*\)", "", wanted).split(", "):
            name, equals, value = part.partition("=")
            if equals:
                agrees = str(told.get(name)) == value
            elif name == "retry":
                agrees = told["state"] not in FINISHED
            elif name in _RESULTS:
                agrees = _result(told) == name
            else:
                agrees = told["state"] == name
            if not agrees:
                return told
        return wanted

    return look


def _again(story: Story, _: object) -> object:
    """Whether anything is started later on."""
    before = story.executions
    story.pass_s(LONG_S)
    return story.executions > before


def _waits(story: Story, wanted: Any) -> list[float]:  # noqa: ANN401 - of a case
    return story.delays[: len(wanted)] if len(story.delays) >= len(wanted) else story.delays


def _retry(story: Story, _: object) -> bool:
    return story.seen[-1]["state"] not in FINISHED


def _retried(story: Story, wanted: Any) -> object:  # noqa: ANN401 - of a case
    retries = max(0, story.executions - 1)
    return bool(retries) if isinstance(wanted, bool) else retries


def _charged(story: Story, _: object) -> int:
    told = story.status
    return int(told["failure_count"] if story.kind == "failure" else told["preemption_count"])


def _budget(story: Story, _: object) -> str:
    return story.kind


def _bounded(story: Story, wanted: str) -> object:
    """Whether losses are spaced, ever more, so that a worker that is lost again and again cannot spin."""
    for _ in range(3):
        story.fail(LOST)
    grows = story.delays == sorted(story.delays) and len(set(story.delays)) > 1 and min(story.delays) > 0
    return wanted if wanted.startswith("explicit, tested") and grows else story.delays


def _infrastructure(story: Story, wanted: str) -> object:
    if wanted != "infrastructure, not job failure":
        msg = f"not understood: classified {wanted!r}"
        raise Skip(msg)
    told = story.status
    ours = [*told["attempts"], *([told] if told["state"] == "WORKER_FAILED" else [])]
    return wanted if told["failure_count"] == 0 and ours and ours[-1]["state"] == "WORKER_FAILED" else told


def _filters(story: Story, _: object) -> bool:
    decisions = [attempt.decision for attempt in story.world.store.attempts(story.job) if attempt.decision is not None]
    return any(decision.rule in {"denied", "failure"} for decision in decisions)


def _unscheduled(story: Story, _: object) -> list[str]:
    return ["j1"] if story.status["state"] == "UNSCHEDULABLE" else []


def _job(story: Story, wanted: str) -> object:
    if wanted == "reaches the true terminal state without waiting for worker death":
        return wanted if story.status["state"] == "SUCCEEDED" and story.executions == 1 else story.status
    if wanted != "PENDING, back in queue":
        msg = f"not understood: expects the job to be {wanted!r}"
        raise Skip(msg)
    return wanted if story.status["state"] == "PENDING" else story.status


def _ignored(story: Story, wanted: Any) -> object:  # noqa: ANN401 - of a case
    story.pass_s(1.0)
    return wanted if story.status["state"] == story.before["state"] and wanted is True else story.status


def _healthy(story: Story, _: object) -> bool:
    """Whether the worker is there for new work."""
    return any(name == "w1" for _, name in story.world.controller.state.capacity.places)


LOOKS: dict[str, Callable[[Story, Any], object]] = {
    "state": _state,
    "not": _not_state,
    "terminal_state": _state,
    "task": _state,
    "last_attempt_state": lambda story, wanted: (
        wanted if wanted.startswith(story.status["attempts"][-1]["state"]) else story.status["attempts"]
    ),
    "response": lambda _, wanted: wanted if wanted == "empty OK" else "",
    "terminal": lambda story, _: story.status["state"] in FINISHED,
    "error": _error,
    "error_contains": _said,
    "message_contains": _said,
    "endpoint_lookup": lambda story, _: [
        address for name in (story.given.endpoint, *story.given.endpoints) for address in _answering(story, name)
    ],
    "endpoint": _inserted,
    "worker.running_jobs": _running_jobs,
    "attempt_error": lambda story, wanted: (
        wanted if any(wanted in one["error"] for one in story.status["attempts"]) else story.status["attempts"]
    ),
    **{
        name: _field(name)
        for name in (
            *("failure_count", "preemption_count", "current_attempt_id", "exit_code", "worker_id", "started_at_ms"),
            *("max_retries_failure", "max_retries_preemption", "job_id", "parent_job_id"),
        )
    },
    "attempts": _attempts,
    "retry_available_at_ms": _available_at,
    "finished_at_ms": _finished,
    "finished_at": _attempt_finished,
    "executions": lambda story, _: story.executions,
    "attempts_run": lambda story, _: story.executions,
    "total_attempts": lambda story, _: len(story.status["attempts"]) + 1,
    "len_attempts": lambda story, _: len(story.status["attempts"]),
    "attempt_ids": lambda story, _: [one["attempt_id"] for one in story.status["attempts"]],
    "retried": _retried,
    "retry": _retry,
    "result": lambda story, _: _result(story.seen[-1]),
    "counter_at_end": _charged,
    "budget": _budget,
    "documented_policy": _bounded,
    "requeued": _again,
    "dispatched_again": _again,
    "ever_dispatched": lambda story, wanted: _again(story, wanted) or story.executions > 0,
    "delays_s": _waits,
    **dict.fromkeys(
        ("delays_ms", "retry_delays_ms"),
        lambda story, wanted: [round(one * 1000) for one in _waits(story, wanted)],
    ),
    "delay_s": lambda story, _: story.delays[-1] if story.delays else None,
    "overflow": lambda story, _: story.delays[-1] > LONG_S,
    "classified": _infrastructure,
    "filters_consulted": _filters,
    "timed_out_jobs": _unscheduled,
    "assignments": lambda story, _: story.executions,
    "job": _job,
    "ignored": _ignored,
    "worker_healthy": _healthy,
    "returns_early": lambda story, _: story.waited in FINISHED and story.status["state"] not in FINISHED,
    "returns": lambda story, _: story.waited,
    "on_timeout": lambda story, _: story.waited,
    "terminal_set": lambda _, wanted: wanted if {*ends()} == {*wanted} else ends(),
    "j1": lambda story, wanted: _fields(story.status, wanted),
}
"""By name: what is seen, which is what was wanted where it agrees."""
