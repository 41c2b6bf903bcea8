"""How everything is now: what `holdfast top` shows, in an answer whose size does not grow with the number of jobs."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.domain.record import Struct
from holdfast.ports.overview import FigureScope
from holdfast.ports.store import JobFilter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.job import Job, Node, Run
    from holdfast.domain.placement.cordon import Cordon
    from holdfast.ports.overview import Latest
    from holdfast.ports.store import Store

_LOOKED_AT = 1000
"""Failed jobs among which the last to fail are found: they are kept by when they were submitted."""


class Now(Struct, frozen=True):
    """How everything is."""

    jobs: Mapping[str, int]
    """All by state."""
    queues: Mapping[str, Mapping[str, int]]
    """Jobs that have not ended, by queue and state."""
    nodes: Sequence[Node]
    cordons: Mapping[str, Cordon]
    """By the names of nodes."""
    runs: Sequence[Run]
    """All that run."""
    held_by: Mapping[str, str]
    """Names of the jobs whose runs have devices, by id."""
    running: Sequence[Job]
    failing: Sequence[Job]
    latest: Mapping[str, Latest]
    """Of those jobs."""


def seen_now(
    store: Store, *, limit: int, named: str = "", counted: Seen | None = None, listed: Seen | None = None
) -> Now:
    """Look at everything: a few questions to the store, however many jobs there are.

    Args:
        store: Where it is.
        limit: How many jobs each list has at most.
        named: What the names of these jobs contain.
        counted: Which jobs are counted; ``None``: all.
        listed: Which jobs are listed; ``None``: all.
    """
    queues: dict[str, dict[str, int]] = defaultdict(dict)
    for (queue, state), count in sorted(store.queue_load(seen=counted).items()):
        queues[queue][str(state)] = count
    running = store.newest([JobState.RUNNING], limit=limit, named=named, seen=listed)
    failing = [
        *store.newest([JobState.BACKOFF, JobState.HELD], limit=limit, named=named, seen=listed),
        *sorted(store.newest([JobState.FAILED], limit=_LOOKED_AT, named=named, seen=listed), key=_since, reverse=True),
    ][:limit]
    runs = list(store.running())
    with_devices = frozenset(run.job_id for run in runs if run.devices)
    return Now(
        jobs=store.count_by_state() if counted is None else store.job_figures(FigureScope(0.0, 0.0, seen=counted)),
        queues=queues,
        nodes=store.nodes(),
        cordons=store.catalogue().cordons,
        runs=runs,
        held_by={job.id: job.name for job in store.jobs(JobFilter(ids=with_devices))},
        running=running,
        failing=failing,
        latest=store.latest_of([job.id for job in (*running, *failing)]),
    )


def _since(job: Job) -> float:
    return job.ended_at or 0.0
