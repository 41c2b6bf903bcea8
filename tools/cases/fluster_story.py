"""One job of Fluster's from its launch on: what happened to it, and how it was seen after each thing that did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.job import Resources
from tools.cases.fluster_world import LOST, OOM, FlusterWorld, exit_of
from tools.cases.results import Skip

if TYPE_CHECKING:
    from holdfast.domain.failure import RunOutcome
    from tools.cases.fluster_given import Given

MEMORY = 64 << 30
LONG_S = 1e6
WORKERS = ("w1", "w2", "w3", "w4")
FINISHED = frozenset({"SUCCEEDED", "FAILED", "KILLED", "WORKER_FAILED", "UNSCHEDULABLE"})


class Story:
    """A job, and the world it is in."""

    def __init__(self, given: Given, *, workers: tuple[str, ...] = WORKERS) -> None:
        """Launch it, and let it come as far as it is given.

        Raises:
            Refused: It cannot be launched.
        """
        self.given = given
        has = {name: Resources(given.worker_cpu * 1000, MEMORY, 0) for name in workers}
        self.world = FlusterWorld(has, timeout_s=given.worker_timeout_s)
        self.world.defaults = given.defaults
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
        self.job = self.world.submit(
            "j1", given.retry or None, resources=given.resources or None, timeout_s=given.timeout_s
        )
        self._begin()
        self.before = self.status

    def _begin(self) -> None:
        given = self.given
        if given.begins in {"running", "killed", "backoff", "failed", "lost"} or given.attempt:
            self.world.only(given.worker)
            self.dispatch()
        for _ in range(given.attempt):
            self.fail(exit_of(1) if given.retry.get("max_retries_failure") else LOST)
            self.dispatch()
        if given.begins in {"backoff", "failed"}:
            if not given.retry:
                self.launch_again({"max_retries_failure": 3, "initial_retry_delay_ms": 8000})
            self.fail(exit_of(1, "boom"))
        elif given.begins == "lost":
            self.fail(LOST)
        elif given.begins == "killed":
            self.terminate()

    def launch_again(self, retry: dict[str, Any]) -> None:
        """Launch another in its place, with a configuration that what the case says needs."""
        self.job = self.world.submit("j2", retry)
        self.dispatch()

    @property
    def status(self) -> dict[str, Any]:
        """How it is seen now."""
        return self.world.status(self.job)

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
            enough=lambda: self.executions > before or self.status["state"] in FINISHED,
        )
        self.world.settle()
        self.at["after_dispatch"] = self.status

    def fail(self, outcome: RunOutcome, at_s: float | None = None) -> None:
        """Let its program end."""
        if self.status["state"] == "PENDING":
            self.dispatch()
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
        while program is not None and self.status["state"] not in FINISHED:
            self.dispatch()
            attempt = self.status["current_attempt_id"]
            code = program(attempt)
            if code:
                self.fail(exit_of(code))
            else:
                self.world.end(self.job, exit_of(0))
                self.world.settle()

    def terminate(self, reason: str = "Terminated by user") -> None:
        """Have a user end it."""
        self.world.terminate(self.job, reason)
        self.world.settle()
        self.world.run_to(self.world.clock.now() + 60, enough=lambda: self.status["state"] in FINISHED)

    def pass_s(self, seconds: float) -> None:
        """Let time pass."""
        self.world.run_to(self.world.clock.now() + seconds)

    def ending(self) -> RunOutcome:
        """Return how the case says that its program ends."""
        if self.given.oom:
            return OOM
        return exit_of(1 if self.given.exit_code is None else self.given.exit_code)
