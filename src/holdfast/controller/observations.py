"""Takes in executors' reports: which runs started, ended or are gone, and which were lost together.

Reports arrive late, twice, out of order or not at all, and a run given up wrongly runs twice. Hence three rules.

- Terminal is absorbing: a report about an unknown or ended run changes nothing.
- What a run was seen doing counts however late the report arrives, because it cannot become untrue.
- That a run is missing counts only if the report is known to be newer than the belief that it was there. A report sent
  to an earlier controller may be older than the order; one that acknowledges this controller cannot be.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.controller.nodes.cordons import Cordons
from holdfast.controller.nodes.losses import Losses
from holdfast.controller.nodes.shortages import Shortages
from holdfast.controller.progress import ProgressEvents
from holdfast.domain.evidence import with_evidence
from holdfast.domain.job import Node, Run
from holdfast.domain.lifecycle import RUN_PREPARED, RUN_PULLING, RUN_STARTED, RUN_TERMINAL, RunStatus
from holdfast.domain.placement.nodes import NODE_WRITTEN_EVERY_S
from holdfast.domain.record import evolve
from holdfast.domain.terms.resources import with_max_pods
from holdfast.domain.workloads.kubejob.pods import named
from holdfast.ports.engine import Observation, RunPhase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.controller.active import Active
    from holdfast.controller.reconcile import Quarantine
    from holdfast.controller.state import ControllerState
    from holdfast.domain.containers import EngineInfo
    from holdfast.domain.evidence import LogPatterns
    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.engine import NodeInfo
    from holdfast.ports.exchange import ExchangeRequest

PROGRESS_WRITTEN_EVERY_S = 5.0
_NEVER = (float("-inf"), 0)
_TAKING_IN = "taking in what its programs did"
_REPORTS = {RunPhase.PULLING: RUN_PULLING, RunPhase.PREPARED: RUN_PREPARED, RunPhase.RUNNING: RUN_STARTED}
_HANDED_OUT = frozenset({RunStatus.CREATING, RunStatus.RUNNING, RunStatus.TERMINATING})


class Observations:
    """The last report of each executor."""

    def __init__(
        self,
        state: ControllerState,
        quarantine: Quarantine,
        *,
        controller_epoch: str,
        lease_s: float | None,
        steady: Callable[[], float],
        log_patterns: Callable[[JobSpec], LogPatterns],
    ) -> None:
        """Start without reports.

        Args:
            state: The controller's memory.
            quarantine: Isolates failures of single runs.
            controller_epoch: The controller's name, which executors acknowledge.
            lease_s: Silence in seconds after which an executor counts as lost; ``None`` for never.
            steady: The monotonic clock for leases.
            log_patterns: Returns what to search for in the output of a job's failed runs.
        """
        self._state = state
        self._quarantine = quarantine
        self.losses = Losses(state)
        self.cordons = Cordons(state)
        self.shortages = Shortages(state)
        self._steady = steady
        self._log_patterns = log_patterns
        self._controller_epoch = controller_epoch
        self._lease_s = lease_s
        self._seen: dict[str, Mapping[str, Observation | None]] = {}
        """The last report of each executor; ``None`` for one that could not be taken in and is to be tried again."""
        self._heard: dict[str, float] = {}
        self.alive: Callable[[str], bool] = self._heard.__contains__
        """Whether an executor is known and within its lease."""
        self._newest: dict[str, tuple[float, int]] = {}
        """The incarnation and sequence number of each executor's last request."""
        self._nodes: dict[str, tuple[Sequence[NodeInfo] | None, EngineInfo | None, float]] = {}
        """The nodes and engine that each executor last reported, and when."""
        self._progress: dict[str, str] = {}
        self._progress_at = float("-inf")
        self._progress_events = ProgressEvents(state)
        self._expected: dict[str, list[str]] = {}
        """Uids of runs from before this controller, or that an executor had, until its next report."""
        self._restored: set[str] = set()
        """Those of them that a restored database says began, which may be true of another machine."""

    def write_progress(self, now: float) -> None:
        """Store the progress of all runs at once, every few seconds at most.

        Events about progress are rarer; tasks of an array, of which there may be very many, have none.
        """
        events = self._progress_events
        if not (self._progress or events.last_by_attempt) or now - self._progress_at < PROGRESS_WRITTEN_EVERY_S:
            return
        self._progress_at, reports, self._progress = now, self._progress, {}
        for uid, progress in reports.items():
            active_run = self._find(uid)
            if active_run is not None and progress not in {"", active_run[1].progress}:
                active, run = active_run
                self._state.note_run(active, evolve(run, progress=progress))
                if active.job.child is None or active.job.of_set is not None:
                    events.heard(active, run)
        if events.last_by_attempt:
            events.tell(now, self._steady())

    def expect(self, run: Run, *, restored: bool = False) -> None:
        """After a restart, start the lease of a run's executor, and notice if the run is missing.

        In a restored database a run that was about to start may have run since, and is not started again.
        """
        self._heard.setdefault(run.executor, self._steady())
        if restored and run.status not in RUN_TERMINAL:
            self._restored.add(run.uid)
        began = run.started_at is not None and run.status not in RUN_TERMINAL
        if began or run.uid in self._restored:
            self._expected.setdefault(run.executor, []).append(run.uid)

    def take(self, request: ExchangeRequest, now: float) -> bool:
        """Take in one report. Returns whether to answer it: not if a newer one has overtaken it.

        Usually nobody waits for the answer to an overtaken report. But an executor whose clock was behind when it
        started looks older than its last incarnation: it must neither act on an answer to that one nor believe that it
        was heard.
        """
        age, newest = (request.incarnation, request.sequence), self._newest.get(request.executor, _NEVER)
        if age <= newest:
            return age == newest
        self._newest[request.executor] = age
        self._heard[request.executor] = self._steady()
        self._see_nodes(request, now)
        self._restored.difference_update(request.observed)
        before = self._seen.get(request.executor, {})
        failed: dict[str, None] = {}
        for uid, observation in request.observed.items():
            # An unchanged report is the same object within a process, and an equal one over a network.
            seen = before.get(uid)
            new = seen is not observation and seen != observation
            if new and not self._take(request.executor, uid, observation, now):
                failed[uid] = None
        self._miss([*before, *self._expected.pop(request.executor, ())], request, now)
        self._seen[request.executor] = {**request.observed, **failed} if failed else request.observed
        if self.losses.ended:
            self.losses.record_ended(now)
        return True

    def _miss(self, uids: list[str], request: ExchangeRequest, now: float) -> None:
        """Note which runs an executor no longer has.

        A report that does not acknowledge this controller may have been sent before such a run began, and may have been
        overtaken by a report to an earlier controller, or by a later incarnation whose clock is behind. So such runs
        are missed only when a report arrives that acknowledges this controller.
        """
        for uid in dict.fromkeys(uids):
            if uid in request.observed:
                continue
            active_run = self._find(uid)
            early = uid in self._restored and active_run is not None and active_run[1].status not in _HANDED_OUT
            if request.acked != self._controller_epoch or early:
                self._expected.setdefault(request.executor, []).append(uid)
                continue
            if (
                active_run is not None
                and active_run[1].executor == request.executor
                and active_run[1].status in _HANDED_OUT
            ):
                self._lose(*active_run, now)

    def _see_nodes(self, request: ExchangeRequest, now: float) -> None:
        nodes, engine, seen_at = self._nodes.get(request.executor, (None, None, 0.0))
        same = (nodes is request.nodes or nodes == request.nodes) and engine == request.engine
        if same and now - seen_at < NODE_WRITTEN_EVERY_S:
            return
        self._nodes[request.executor] = (request.nodes, request.engine, now)
        self._state.lose_places(request.executor, but={node.name for node in request.nodes})
        for node in request.nodes:
            capacity = with_max_pods(node.capacity)
            seen_node = Node(node.name, request.executor, capacity, node.labels, now, request.engine, node.devices)
            self._state.see_node(self.shortages.on(self.cordons.on(seen_node) if node.devices else seen_node))

    def missed(self, request: ExchangeRequest) -> frozenset[str]:
        """Return the runs from before this controller that a request does not list and that may still exist.

        Unless the request is late they are gone, so its answer must not start them a second time.
        """
        return frozenset(self._expected.get(request.executor, ())).difference(request.observed)

    def lose_silent(self, now: float) -> None:
        """End the runs of executors that were silent for longer than their lease."""
        if self._lease_s is None:
            return
        steady = self._steady()
        for executor in [name for name, heard in self._heard.items() if steady - heard > self._lease_s]:
            del self._heard[executor]
            self._seen.pop(executor, None)
            self._newest.pop(executor, None)
            self._nodes.pop(executor, None)
            self._expected.pop(executor, None)
            self._state.lose_places(executor)
            self._lose_runs(executor, now)
        if self.losses.ended:
            self.losses.record_ended(now)

    def _lose_runs(self, executor: str, now: float) -> None:
        for active in list(self._state.active.values()):
            for run in list(active.runs.values()):
                if run.executor == executor and run.status in _HANDED_OUT:
                    self._lose(active, run, now)

    def _lose(self, active: Active, run: Run, now: float) -> None:
        end = partial(self._end, active, run, run.lost(now, restored=run.uid in self._restored), now)
        if not self._quarantine.attempt_anyway(active.job.kind, run.job_id, now, _TAKING_IN, end):
            self._expected.setdefault(run.executor, []).append(run.uid)

    def _take(self, executor: str, uid: str, observation: Observation, now: float) -> bool:
        """Take in the report about one run; returns whether that was possible.

        A report about a run of another executor is ignored: the reporting one cannot know it.
        """
        active_run = self._find(uid)
        if active_run is None or active_run[1].executor != executor:
            return True
        self._progress[uid] = observation.progress
        report = partial(self._report, *active_run, observation, now)
        return self._quarantine.attempt_anyway(active_run[0].job.kind, active_run[1].job_id, now, _TAKING_IN, report)

    def _report(self, active: Active, run: Run, observation: Observation, now: float) -> None:
        if observation.outcome is not None:
            self._end(active, run, observation.outcome, now)
            return
        if observation.node and observation.node != run.node:
            run = evolve(run, node=observation.node)
            self._state.put_run(active, run)
        if observation.ports and not run.ports:
            run = evolve(run, ports=dict(zip(active.spec.ports, observation.ports, strict=False)))
            self._state.put_run(active, run)
        row = _REPORTS.get(observation.phase)
        status = None if row is None else row.moves.get(run.status)
        if status is not None:
            started = _began(run, observation.started_at, now) if row is RUN_STARTED else None
            self._state.put_run(active, evolve(run, status=status, status_since=now, started_at=started))
            if started is not None:
                self.shortages.heard(active.runs[run.uid], now)

    def _find(self, uid: str) -> tuple[Active, Run] | None:
        job_id = self._state.owner.get(uid)
        active = self._state.active.get(job_id) if job_id else None
        run = active.runs.get(uid) if active else None
        if active is None or run is None or run.status in RUN_TERMINAL:
            return None
        return active, run

    def _end(self, active: Active, run: Run, outcome: RunOutcome, now: float) -> None:
        if active.spec.pod is not None:  # Local processes have one node name whatever they run on.
            outcome = named(outcome, active.spec.pod.program.container)
        ended = run.ended(with_evidence(outcome, self._log_patterns(active.spec)), now)
        if run.devices and not outcome.succeeded:
            self.cordons.judge(ended, active.job, now)
        if run.started_at is None:
            self.shortages.heard(ended, now)
        self._state.put_run(active, ended)
        if outcome.lost and run.uid not in self._restored:  # This is no evidence against the job or its executor.
            self.losses.ended.append(ended)


def _began(run: Run, reported_at: float | None, now: float) -> float:
    """Return when a program began by its machine's clock, but no earlier than its order and no later than now."""
    return min(max(reported_at or now, run.status_since), now)
