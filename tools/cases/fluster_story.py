"""One job of Fluster's from its launch on: what happened to it, and how it was seen after each thing that did."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.domain.job import JobState, Resources
from tools.cases.fluster_door import Refused
from tools.cases.fluster_world import LOST, OOM, FlusterWorld, exit_of
from tools.cases.results import Skip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.failure import RunOutcome
    from tools.cases.fluster_given import Given

MEMORY = 64 << 30
LONG_S = 1e6
WORKERS = ("w1", "w2", "w3")
FOR_GOOD = {"failed for good": exit_of(1, "boom"), "lost for good": LOST}
"""How jobs ended that have no retry left."""
FINISHED = frozenset({"SUCCEEDED", "FAILED", "KILLED", "WORKER_FAILED", "UNSCHEDULABLE"})


_RUNS = frozenset({"running", "backoff", "failed", "lost", "killed", *FOR_GOOD, "succeeded"})
"""How far jobs have come that were started."""


class Story:
    """A job, and the world it is in."""

    def __init__(self, given: Given, *, workers: tuple[str, ...] = WORKERS) -> None:
        """Launch it, and let it come as far as it is given."""
        self.given = given
        has = {name: Resources(given.worker_cpu * 1000, MEMORY, 0) for name in workers}
        self.world = FlusterWorld(has, timeout_s=given.worker_timeout_s)
        self.world.default(given.defaults)
        self.world.term_delay_s = LONG_S if given.ignores_sigterm else 0.0
        self.seen: list[dict[str, Any]] = []
        """After each failure."""
        self.at: dict[str, dict[str, Any]] = {}
        """After whatever has a name."""
        self.delays: list[float] = []
        self.kind = "failure"
        """What the last failure was charged to."""
        self.before: dict[str, Any] = {}
        """How it was before what the case is about."""
        self.refused: Refused | None = None
        """Why the last call was refused, if it was."""
        self.surprises: list[str] = []
        """What happened otherwise than the case says."""
        self.waited = ""
        """What a client's wait for it came to: a state, or an error."""
        self.addresses: list[str] = []
        """What its programs registered, in turn."""
        self.name, self.job = given.name if not given.unknown else "j1", ""
        try:
            self.launch(self.name, given.retry or None)
        except Refused as error:
            self.refused = error
            return
        self._begin()
        self.before = self.status

    def _begin(self) -> None:
        given = self.given
        if given.begins in _RUNS or given.attempt:
            self.world.only(given.worker)
            self.dispatch()
        for _ in range(given.attempt):
            self.fail(exit_of(1) if given.retry.get("max_retries_failure") else LOST)
            self.dispatch()
        self._relive(given.history)
        if given.endpoint and given.begins in _RUNS:
            self.register()
            for name in given.endpoints:
                self.register(name)
        comes: dict[str, Callable[[], object]] = {
            **dict.fromkeys(("backoff", "failed"), self._fail_once),
            "lost": lambda: self.fail(LOST),
            **{name: partial(self._fail_for_good, outcome) for name, outcome in FOR_GOOD.items()},
            "succeeded": self.succeed,
            "unschedulable": self.time_out,
            "killed": self.terminate,
        }
        comes.get(given.begins, lambda: None)()

    def _relive(self, history: Sequence[RunOutcome | None]) -> None:
        """Let its attempts go as is said of each."""
        budgets = {"max_retries_failure": 100, "max_retries_preemption": 100}
        if history and budgets.keys() - self.given.retry.keys():
            self.launch("j2", {**budgets, **self.given.retry})
        for outcome in history:
            if outcome is None:
                self.dispatch()
            else:
                self.fail(outcome)

    def _fail_once(self) -> None:
        if not self.given.retry:
            self.launch_again({"max_retries_failure": 3, "initial_retry_delay_ms": 8000})
        self.fail(exit_of(1, "boom"))

    def _fail_for_good(self, outcome: RunOutcome) -> None:
        while not self.world.job(self.job).terminal:
            self.fail(outcome)

    def launch(self, name: str, retry: dict[str, Any] | None) -> None:
        """Launch a job, which is what all that follows is about.

        Raises:
            Refused: It is not valid, or its name is taken.
        """
        resources = self.given.resources or None
        self.job = self.world.submit(name, retry, resources=resources, timeout_s=self.given.timeout_s)
        self.name = name

    def launch_again(self, retry: dict[str, Any]) -> None:
        """Launch another in its place, with a configuration that what the case says needs."""
        self.launch("j2", retry)
        self.dispatch()

    def register(self, name: str = "") -> None:
        """Have its program say where it answers, at an address that no other had.

        Raises:
            Refused: It does not run.
        """
        address = f"10.0.0.{len(self.addresses) + 1}:80"
        self.world.door.register(self.name, name or self.given.endpoint or f"{self.name}/actor", address)
        self.addresses.append(address)

    @property
    def status(self) -> dict[str, Any]:
        """How it is seen now; nothing is seen of what could not be launched."""
        return self.world.status(self.job) if self.job else {"state": "", "attempts": []}

    @property
    def executions(self) -> int:
        """How often it was started."""
        return len({order.attempt for order in self.world.started(self.job)})

    def dispatch(self, worker: str | None = None, at_s: float | None = None) -> None:
        """Let it be started, at an instant or as soon as may be."""
        before = self.executions
        if at_s is not None:
            self.world.close()
            self.world.run_to(at_s)
            self.world.open()
        if worker is not None and worker not in self.world.workers:
            msg = f"not understood: there is no worker {worker}"
            raise Skip(msg)
        if worker is not None:
            self.world.only(worker)
        self.world.run_to(
            self.world.clock.now() + LONG_S,
            enough=lambda: self.executions > before or self.world.job(self.job).terminal,
        )
        self.world.settle()

    def _runs(self) -> bool:
        """Let it be started, if it is not; what has ended is not, which the case says otherwise."""
        if self.world.job(self.job).state is not JobState.RUNNING:
            self.dispatch()
        if ended := self.world.job(self.job).terminal:
            self.surprises.append(f"it is {self.status['state']} and runs no more")
        return not ended

    def fail(self, outcome: RunOutcome, at_s: float | None = None) -> None:
        """Let its program end."""
        if not self._runs():
            return
        if at_s is not None:
            self.world.run_to(at_s)
        failures = self.status["failure_count"]
        self.world.end(self.job, outcome)
        self.world.settle()
        told = self.status
        self.kind = "failure" if told["failure_count"] > failures else "preemption"
        self.seen.append(told)
        if told["state"] not in FINISHED:
            due = self.world.job(self.job).retry_at
            self.delays.append(0.0 if due is None else round(due - self.world.clock.now(), 3))

    def run(self) -> None:
        """Let its program do what it is given until the job is over."""
        program = self.given.program
        while program is not None and not self.world.job(self.job).terminal:
            self.dispatch()
            outcome = program(self.executions - 1)
            if outcome.succeeded:
                self.succeed()
            else:
                self.fail(outcome)

    def succeed(self, at_s: float | None = None) -> None:
        """Let its program end well."""
        if not self._runs():
            return
        if at_s is not None:
            self.world.run_to(at_s)
        self.world.end(self.job, exit_of(0))
        self.world.settle()

    def time_out(self) -> None:
        """Let it find no place for as long as it may wait, on workers that take nothing."""
        self.world.close()
        if self.given.timeout_s is None:
            msg = "not understood: no scheduling timeout is given"
            raise Skip(msg)
        self.pass_s(self.given.timeout_s + 1)

    def terminate(self) -> None:
        """Have a user end it.

        Raises:
            Refused: There is no such job.
        """
        self.world.door.terminate(self.given.name if self.given.unknown else self.name)
        self.world.settle()
        self.world.run_to(self.world.clock.now() + 60, enough=lambda: self.world.job(self.job).terminal)

    def pass_s(self, seconds: float) -> None:
        """Let time pass."""
        self.world.run_to(self.world.clock.now() + seconds)

    def ending(self) -> RunOutcome:
        """Return how the case says that its program ends."""
        if self.given.oom:
            return OOM
        return exit_of(1 if self.given.exit_code is None else self.given.exit_code)
