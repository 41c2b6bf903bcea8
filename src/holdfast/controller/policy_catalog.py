"""The operator's policies, categories, queues and settings, compiled, and read again when their version changes."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from holdfast.controller.bounded_cache import BoundedCache
from holdfast.domain import failure_catalogue
from holdfast.domain.classify import CompiledCategories
from holdfast.domain.evidence import LogPatterns, log_patterns_of
from holdfast.domain.file_settings import FileSettings
from holdfast.domain.lifecycle import PROMOTE_TO_RUNNING
from holdfast.domain.lifecycle.engine import resolve_options
from holdfast.domain.policy.builtin import unknown_end
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.workloads.gang.policies import compiled_for, first_policies
from holdfast.domain.workloads.judge import Judgement, Ruleset

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from holdfast.controller.nodes.losses import Losses
    from holdfast.controller.nodes.shortages import Shortages
    from holdfast.domain.job import Job, Run
    from holdfast.domain.lifecycle.engine import HandlerLimits
    from holdfast.domain.placement.fit import Place, PlaceKey
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.store import ControllerStore

_MOST_COMPILED = 1_024
"""Small, because the compiled form of a thousand rules takes megabytes."""
_log = logging.getLogger(__name__)


class PolicyCatalog:
    """The catalogue in force, read once per version."""

    def __init__(self, store: ControllerStore) -> None:
        self._store = store
        self._compiled: BoundedCache[PolicySet] = BoundedCache(_MOST_COMPILED)
        self._log_patterns: BoundedCache[LogPatterns] = BoundedCache(_MOST_COMPILED)
        self._starts: dict[str, float | None] = {}
        self.read()

    def read(self) -> None:
        """Read the catalogue if it has changed."""
        self.catalogue = self._store.catalogue()
        self._compiled.clear()
        self._log_patterns.clear()
        self._starts.clear()
        queues = self.catalogue.queues.values()
        self.queue_notify = {queue.name: queue.notify for queue in queues if queue.notify}
        configured = self.catalogue.configured or FileSettings("")
        own = (*configured.categories, *self.catalogue.categories)
        built_in = () if configured.default_category else failure_catalogue.builtin_beside(own)
        self.categories = CompiledCategories.compile(
            own,
            built_in=built_in,
            default_category=configured.default_category,
            default_subcategory=configured.default_subcategory,
            last=[failure_catalogue.INTERNAL],
        )
        self._stored_patterns = LogPatterns(log_patterns_of(self.catalogue.policies.values(), [*own, *built_in]))
        for entry, why in self.catalogue.unreadable.items():
            _log.error("%s of the catalogue cannot be read: %s", entry, why)

    def handler_limits(self, queue: str) -> tuple[HandlerLimits, ...]:
        """Return a queue's handler limits; its own override the general ones."""
        of_queue = self.catalogue.queues.get(queue)
        return (self.catalogue.settings.handler_limits, of_queue.handler_limits if of_queue is not None else {})

    def starts_within_s(self, queue: str) -> float | None:
        """Return how many seconds a program of a queue may take to start; called in each look at pods."""
        if queue not in self._starts:
            self._starts[queue] = resolve_options(PROMOTE_TO_RUNNING, *self.handler_limits(queue)).timeout_s
        return self._starts[queue]

    def compiled(self, job: Job, spec: JobSpec) -> PolicySet:
        """Return the policies that apply to a job; equal lists are compiled once."""
        built_in = spec.pod is None if spec.builtin is None else spec.builtin
        question: Hashable = (job.queue, spec.retry_policies, spec.inline_policies, spec.no_retry, built_in)
        if (ends := (spec.on_unknown_end, spec.array_on_unknown_end)) != (None, None):
            question = (question, ends)
        if spec.checkpointed_exit_code is not None:
            question = (question, first_policies(spec))
        if (session := spec.session) is not None:
            question = (session.type, session.retries_enabled, session.policy)
        return self._compiled.get(question) or self._compiled.keep(question, self._compile(job, spec))

    def log_patterns(self, spec: JobSpec) -> LogPatterns:
        """Return what to search for in the output of a job's failed runs: everything that any policy could ask for.

        Other policies may apply by the time the run is judged, and its output is not kept until then.
        """
        stored, own = self._stored_patterns, spec.inline_policies
        if not own:
            return stored
        patterns = self._log_patterns.get(own)
        return patterns or self._log_patterns.keep(own, LogPatterns(log_patterns_of(own), beside=stored))

    def named(self, names: tuple[str, ...]) -> PolicySet:
        """Return named policies in order, without those of the queue and the built-in one."""
        policy_set = self._compiled.get(names)
        if policy_set is None:
            by_name = self.catalogue.policies
            policies = [by_name[name] for name in names if name in by_name]
            missing = [name for name in names if name not in by_name]
            compiled = PolicySet.compile(policies, unknown_end=unknown_end(policies), missing=missing)
            policy_set = self._compiled.keep(names, compiled)
        return policy_set

    def _compile(self, job: Job, spec: JobSpec) -> PolicySet:
        named, missing = self.catalogue.policies_for(job.queue, spec)
        if missing:
            _log.warning("job %s names retry policies that do not exist: %s", job.id, missing)
        return compiled_for(spec, named, missing, builtin=self.catalogue.settings.builtin)


@dataclass(frozen=True, slots=True)
class PolicyJudge:
    """Collects what a failure is judged by: the present policies, nodes, losses and shortages."""

    catalog: PolicyCatalog
    losses: Losses
    shortages: Shortages
    places: Mapping[PlaceKey, Place]
    draw: Callable[[], float]
    away: Callable[[float], Sequence[Place]]
    """Nodes that are gone and may come back."""

    def of_gang(self, job: Job, spec: JobSpec, runs: Sequence[Run], now: float) -> Judgement:
        """Return what the failure of a gang's runs is judged by."""
        return self._judgement(self.catalog.compiled(job, spec), job.id, runs, now)

    def of_pod(self, policies: tuple[str, ...], run: Run, now: float) -> Judgement:
        """Return what the failure of a pod's program is judged by, which named policies may restart."""
        if policies:
            return self._judgement(self.catalog.named(policies), run.job_id, (run,), now)
        # Kubernetes' own rules need no dice, grow nothing and suspect nobody.
        ruleset = Ruleset(self.catalog.named(()), self.catalog.categories, self.catalog.catalogue.settings)
        return Judgement(ruleset, refusals=self._refusals((run,)))

    def _judgement(self, policies: PolicySet, job_id: str, runs: Sequence[Run], now: float) -> Judgement:
        catalog, places = self.catalog, tuple(self.places.values())
        away = partial(self.away, now)
        ruleset = Ruleset(policies, catalog.categories, catalog.catalogue.settings, places, away)
        suspicion = self.losses.suspicion(job_id, runs) if self.losses.recent else None
        return Judgement(ruleset, self.draw(), suspicion, self._refusals(runs))

    def _refusals(self, runs: Sequence[Run]) -> int:
        return self.shortages.refusals(runs) if self.shortages.refused else 0
