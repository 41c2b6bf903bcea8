"""What cases of Fluster's can be given: a table of names, each with what it may say."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.domain.policy.model import RetryDefaults
from tools.cases.fluster_world import LOST, exit_of
from tools.cases.results import Skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.failure import RunOutcome

_MS = 1000
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBERS = {"once": 1, "twice": 2, "a": 1, "an": 1, "zero": 0, **{word: at for at, word in enumerate(_WORDS)}}
NUMBER = rf"(?:\d+|{'|'.join(NUMBERS)})"
"""A number, perhaps in words."""
TIMES = rf"(?:once|twice|{NUMBER} times?)"


def number_of(word: str) -> int:
    """Read a number, perhaps in words, perhaps of times."""
    first = word.split(" ", maxsplit=1)[0]
    return int(first) if first.isdigit() else NUMBERS[first]


@dataclass(slots=True)
class Given:
    """What a case begins with."""

    name: str = "j1"
    """What the job is called."""
    taken: bool = False
    """Whether a job of that name is there already."""
    unknown: bool = False
    """Whether what is asked about is a job that nobody knows."""
    endpoint: str = ""
    """What the program registers that runs."""
    endpoints: list[str] = field(default_factory=list)
    """What else it registers."""
    retry: dict[str, Any] = field(default_factory=dict)
    retries: list[Mapping[str, Any] | None] = field(default_factory=list)
    """Several configurations, each of a job of its own."""
    defaults: RetryDefaults = RetryDefaults()  # noqa: RUF009 - it is frozen
    resources: dict[str, Any] = field(default_factory=dict)
    worker_cpu: int = 64
    timeout_s: float | None = None
    """For a place."""
    worker_timeout_s: float | None = None
    silent_s: float = 0.0
    """How long a worker has been silent."""
    program: Callable[[int], RunOutcome] | None = None
    """How each attempt ends, which count from 0."""
    begins: str = "new"
    """How far the job has come: ``new``, ``pending``, ``running``, ``backoff``, ``killed``, ``failed``, ``lost``."""
    worker: str = "w1"
    attempt: int = 0
    history: list[RunOutcome | None] = field(default_factory=list)
    """How its attempts went, where that is said of each; ``None``: it runs."""
    ran_s: float = 0.0
    failed_at_s: float | None = None
    waited_s: float = 0.0
    exit_code: int | None = None
    oom: bool = False
    grace_s: float | None = None
    ignores_sigterm: bool = False
    loses_a_report: bool = False


def read_given(given: Mapping[str, Any]) -> Given:
    """Read what a case is given.

    Raises:
        Skip: Something of it is not understood.
    """
    found = Given()
    for name, value in given.items():
        reader = READERS.get(name) or (_earlier if _EARLIER.fullmatch(name) else None)
        if reader is None or reader(found, value) is False:
            msg = f"not understood: given {name!r} of {value!r}"
            raise Skip(msg)
    return found


Reader = "Callable[[Given, Any], bool | None]"


def _config(name: str, factor: int | None = None) -> Callable[[Given, Any], bool | None]:
    def read(found: Given, value: Any) -> bool | None:  # noqa: ANN401 - of a case
        if isinstance(value, (list, str)) and not name.endswith("codes"):
            return False
        found.retry[name] = value if factor is None else round(value * factor)
        return None

    return read


_SHORT = {
    "initial_delay": ("initial_retry_delay_ms", _MS),
    "initial": ("initial_retry_delay_ms", _MS),
    "max_delay": ("max_retry_delay_ms", _MS),
    "max": ("max_retry_delay_ms", _MS),
    "multiplier": ("backoff_multiplier", None),
    **{name: (name, None) for name in ("initial_retry_delay_ms", "max_retry_delay_ms", "backoff_multiplier")},
    "max_retries_failure": ("max_retries_failure", None),
    "max_retries_preemption": ("max_retries_preemption", None),
    "retry_on_exit_codes": ("retry_on_exit_codes", None),
    "no_retry_on_exit_codes": ("no_retry_on_exit_codes", None),
}


def config_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration in the protocol's names."""
    found = Given()
    for name, each in value.items():
        if name not in _SHORT:
            msg = f"not understood: given a configuration with {name!r}"
            raise Skip(msg)
        READERS[name](found, each)
    return found.retry


def _retry(found: Given, value: Any) -> bool | None:  # noqa: ANN401 - of a case
    if isinstance(value, list):
        found.retries = [config_of(one) for one in value]
    elif isinstance(value, dict):
        found.retry |= config_of(value)
    elif value == "message absent, or present with only max_retries_failure set":
        found.retries = [None, {"max_retries_failure": 1}]
    else:
        return value in {None, "absent", "unset", "none", "message absent"}
    return None


_FAILS = re.compile(
    rf"(?:fails|(?:always )?exits? (?P<code>\d+)|(?P<lost>(?:its )?worker dies)) ?(?P<times>{TIMES}|\w+)?"
    r"(?:,? (?:and )?then (?:(?:succeeds|returns)(?: 0)?|exits? 0))"
)
_IN_TURN = re.compile(r"exits? (?P<codes>\d+(?:,? (?:and )?(?:then )?(?:exits? )?\d+)+)")
_ALWAYS = re.compile(r"(?:always )?(?:exits? (\d+)|fails|succeeds|returns)(?: always)?")


def _program(found: Given, value: str) -> bool | None:
    if match := _FAILS.fullmatch(value):
        failures = number_of(match["times"] or "once")
        outcome = LOST if match["lost"] else exit_of(int(match["code"] or 1))
        found.program = lambda attempt: outcome if attempt < failures else exit_of(0)
    elif match := _IN_TURN.fullmatch(value):
        codes = [int(code) for code in re.findall(r"\d+", match["codes"])]
        found.program = lambda attempt: exit_of(codes[min(attempt, len(codes) - 1)])
    elif match := _ALWAYS.fullmatch(value):
        always = exit_of(int(match[1]) if match[1] else int("fails" in value))
        found.program = lambda _: always
    else:
        return False
    return None


_STATE = re.compile(r"(PENDING|RUNNING|KILLED|SUCCEEDED|FAILED|WORKER_FAILED|UNSCHEDULABLE)(?: on (w\d+))?")
_ENDS = {"failed": "failed for good", "worker_failed": "lost for good"}


def _state(found: Given, value: str) -> bool | None:
    match = _STATE.fullmatch(value)
    if value == "PENDING in back-off":
        return _in_backoff(found, "now+8000")
    if match is None:
        return False
    state = match[1].lower()
    if state == "pending" and found.begins == "backoff":
        return None
    found.begins, found.worker = _ENDS.get(state, state), match[2] or found.worker
    return None


_NOBODY = frozenset({"unknown", "nonexistent", "missing", "no such job"})
_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)*")


def _job(found: Given, value: str) -> bool | None:
    """Read what the job is called, or that nobody knows it, or how far it has come."""
    if value in _NOBODY:
        found.unknown, found.begins = True, "running"
        found.name = value if value in {"nonexistent", "missing"} else "nobody"
        return None
    if _STATE.fullmatch(value) or value == "PENDING in back-off":
        return _state(found, value)
    if _NAME.fullmatch(value) is None:
        return False
    found.name = value
    return None


def _name(found: Given, value: str) -> bool | None:
    """Read what is launched: ``NAME``, ``NAME exists``, ``NAME of a job that has ended`` or nothing."""
    match = re.fullmatch(
        rf"(?P<name>\S*)(?P<taken> (?:exists|is taken)(?: already)?(?:,? \(?(?P<state>{_STATE.pattern})\)?)?)?", value
    )
    if match is None or (match["state"] and _state(found, match["state"]) is False):
        return False
    found.name, found.taken = match["name"], match["taken"] is not None
    return None


def _endpoint(found: Given, value: str) -> bool | None:
    """Read ``NAME`` or ``NAME at ...`` of what the program that runs registers."""
    match = re.fullmatch(rf"({_NAME.pattern})(?: at [\w.: -]+)?", value)
    if match is None:
        return False
    found.endpoint, found.begins = match[1], "running"
    return None


def _endpoints(found: Given, value: Any) -> bool | None:  # noqa: ANN401 - of a case
    """Read what it registers: names, or how many."""
    names = [f"{found.name}/actor-{at}" for at in range(value)] if isinstance(value, int) else value
    if not names or not all(isinstance(name, str) for name in names):
        return False
    found.endpoint, found.begins = names[0], "running"
    found.endpoints = names[1:]
    return None


def _in_backoff(found: Given, value: str) -> bool | None:
    match = re.fullmatch(r"now\+(\d+)", value)
    if match is None:
        return False
    wait_ms = int(match[1])
    found.begins = "backoff"
    found.retry |= {"max_retries_failure": 3, "initial_retry_delay_ms": wait_ms}
    return None


def _defaults(found: Given, value: Mapping[str, int]) -> bool | None:
    names = {name: re.sub(r"^(?:default_)?(?:max_retries_|retry_)?", "", name) for name in value}
    told = {names[name]: each for name, each in value.items()}
    if told.keys() - {"failure", "preemption", "delay_ms"}:
        return False
    found.defaults = RetryDefaults(told.get("failure", 0), told.get("preemption", 100), told.get("delay_ms", 1000))
    return None


def _attempt(found: Given, value: Any) -> bool | None:  # noqa: ANN401 - of a case
    if isinstance(value, int):
        found.attempt = value
    elif value == "FAILED but task re-queued":
        found.begins = "failed"
    else:
        return False
    return None


_EARLIER = re.compile(r"attempt \d+")
_WENT = re.compile(r"(?:FAILED|failed)?(?:,? ?\(?exit(?:s|ed)?(?: code|_code=)? ?(?P<code>\d+)\)?)?")


def _earlier(found: Given, value: str) -> bool | None:
    """Read how one of its attempts went, in their order."""
    went = _WENT.fullmatch(value)
    if value in {"RUNNING", "running", "running now"}:
        found.history.append(None)
    elif re.fullmatch(r"WORKER_FAILED|(?:its )?worker (?:was )?(?:lost|died|dies)|preempted", value):
        found.history.append(LOST)
    elif value and went is not None:
        found.history.append(exit_of(int(went["code"] or 1)))
    else:
        return False
    return None


def _ago(name: str) -> Callable[[Given, Any], bool | None]:
    def read(found: Given, value: str) -> bool | None:
        match = re.fullmatch(r"now ?- ?(\d+(?:\.\d+)?) ?(ms|s)", value)
        if match is None:
            return False
        setattr(found, name, float(match[1]) / (_MS if match[2] == "ms" else 1))
        return None

    return read


def _set(name: str, factor: float | None = None) -> Callable[[Given, Any], bool | None]:
    def read(found: Given, value: Any) -> bool | None:  # noqa: ANN401 - of a case
        setattr(found, name, value if factor is None else value * factor)
        return None

    return read


def _is(*allowed: object, **sets: object) -> Callable[[Given, Any], bool | None]:
    """Understand these values alone, and set what they mean."""

    def read(found: Given, value: Any) -> bool | None:  # noqa: ANN401 - of a case
        if value not in allowed:
            return False
        for name, each in sets.items():
            setattr(found, name, each)
        return None

    return read


def _task(found: Given, value: str) -> bool | None:
    if value == "PENDING for retry; last attempt FAILED":
        found.begins = "failed"
    elif value == "terminal":
        found.begins = "failed for good"
    elif _STATE.fullmatch(value):
        return _state(found, value)
    else:
        return False
    return None


def _worker(found: Given, value: str) -> bool | None:
    if value in {"free", "no longer lists the attempt"}:
        return None
    if re.fullmatch(r"w\d+", value) is None:
        return False
    found.worker = value
    return None


def _holder(found: Given, value: str) -> bool | None:
    """Have it run on a worker."""
    found.begins = "running"
    return _worker(found, value)


def _resource(name: str) -> Callable[[Given, Any], bool | None]:
    def read(found: Given, value: Any) -> bool | None:  # noqa: ANN401 - of a case
        found.resources[name] = value
        return None

    return read


READERS: dict[str, Callable[[Given, Any], bool | None]] = {
    **{short: _config(name, factor) for short, (name, factor) in _SHORT.items()},
    "retry": _retry,
    "job_retry": _retry,
    "both_lists": _is("empty"),
    "controller_defaults": _defaults,
    "program": _program,
    "state": _state,
    "job": _job,
    "job_id": _job,
    "name": _name,
    "endpoint": _endpoint,
    "endpoints": _endpoints,
    "retry_available_at_ms": _in_backoff,
    "attempt": _attempt,
    "task": _task,
    "worker": _worker,
    "worker_id": _holder,
    "current_attempt_id": _set("attempt"),
    "cpu": _resource("cpu"),
    "worker_cpu": _set("worker_cpu"),
    "scheduling_timeout_seconds": _set("timeout_s"),
    "ran_for_s": _set("ran_s"),
    "failed_at_ms": _set("failed_at_s", 1 / _MS),
    "submitted": _ago("waited_s"),
    "worker_timeout_seconds": _set("worker_timeout_s"),
    "last_heartbeat": _ago("silent_s"),
    "running": _is(["j1"], begins="running"),
    "exit": _set("exit_code"),
    "oom_killed": _set("oom"),
    "term_timeout_ms": _set("grace_s", 1 / _MS),
    "report": _is("terminal report RPC fails once; worker stays healthy", begins="running", loses_a_report=True),
    "result": _is("attempt SUCCEEDED but report lost", begins="running", loses_a_report=True),
    "process": _is("ignores SIGTERM", ignores_sigterm=True, begins="running"),
}
"""By name: what it sets; ``False`` is a value that is not understood."""
