"""What somebody sees of one place only, in every query that is for them: whole queues, and groups by their segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access.grants import Seen
from holdfast.domain.access.places import WorkScope
from holdfast.domain.events.operators import NodeRecovered
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.events.workloads import ArrayDeleted
from holdfast.domain.job import JobState, Queue
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, Indexes
from holdfast.errors import NotFound
from holdfast.ports.events import EventFilter
from holdfast.ports.overview import FigureScope, Share
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.ports.workloads import WorkloadFilter
from holdfast.service.admission.dependencies import NOTHING
from holdfast.service.admission.records import new_array, new_job
from tests.reading import read_job_mapping
from tests.unit.test_scopes import PLACES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.ports.store import Store

GROUPS = sorted({group for _, group, _ in PLACES})


def _place(text: str) -> WorkScope:
    what, _, name = text.partition("=")
    return WorkScope(queue=name) if what == "queue" else WorkScope(group=name)


@pytest.fixture
def filled(store: Store) -> Store:
    store.put_entry(Queue("gpu"))
    jobs = []
    arrays = []
    for number, group in enumerate(GROUPS):
        plain = read_job_mapping({"name": f"job{number}", "command": ["true"], "queue": "gpu"})
        spec = evolve(plain, group=group)
        jobs.append(evolve(new_job(spec, f"j{number:04}", 1.0), submitted_by="ann"))
        array = ArraySpec(evolve(spec, name=f"array{number}"), (Indexes(0, 0),))
        arrays.append(evolve(new_array(array, NOTHING, "", f"a{number:04}", 1.0), submitted_by="ann"))
    store.submit(Submission(jobs, also=arrays))
    return store


def _numbers(names: Sequence[str]) -> list[int]:
    return sorted(int(name.removeprefix("job").removeprefix("array")) for name in names)


@pytest.mark.parametrize("where", sorted({place for place, _, _ in PLACES}))
def test_each_query_finds_what_is_in_a_place_and_nothing_else(filled: Store, where: str) -> None:
    place = _place(where)
    inside = [number for number, group in enumerate(GROUPS) if place.holds("gpu", group)]
    for seen in (Seen(everyones=True, places=(place,)), Seen("ann", places=(place,))):
        assert _numbers([job.name for job in filled.jobs(JobFilter(seen=seen))]) == inside
        assert _numbers([one.name for one in filled.workloads(Array, WorkloadFilter(seen=seen))]) == inside
        assert _numbers([one.workload.name for one in filled.all_asked_of(Array, WorkloadFilter(seen=seen))]) == inside
        newest = filled.newest([JobState.QUEUED], limit=99, seen=seen)
        assert _numbers([job.name for job in newest]) == inside
        assert sum(filled.queue_load(seen=seen).values()) == len(inside)
        assert sum(filled.job_figures(FigureScope(0.0, 9.0, seen=seen)).values()) == len(inside)
        told = filled.events(limit=999, where=EventFilter(seen=seen))
        assert {one.job_id for one in told} == {f"j{number:04}" for number in inside}
        for number in range(len(GROUPS)):
            if number in inside:
                assert filled.job(f"job{number}", seen=seen).id == f"j{number:04}"
                continue
            for reference in (f"job{number}", f"j{number:04}", f"job{number}@j{number:04}"):
                with pytest.raises(NotFound):
                    filled.job(reference, seen=seen)
    assert filled.jobs(JobFilter(seen=Seen("ben", places=(place,)))) == []
    assert filled.workloads(Array, WorkloadFilter(seen=Seen("ben", places=(place,)))) == []


def test_places_add_up_and_none_is_nothing(filled: Store) -> None:
    both = Seen(everyones=True, places=(WorkScope(group="lab"), WorkScope(group="lab/1")))
    assert {job.group for job in filled.jobs(JobFilter(seen=both))} == {"lab", "lab/1"}
    assert filled.jobs(JobFilter(seen=Seen(everyones=True, places=()))) == []
    assert filled.workloads(Array, WorkloadFilter(seen=Seen(everyones=True, places=()))) == []
    assert filled.usage_figures(FigureScope(0.0, 9.0, seen=Seen(everyones=True, places=())), Share.USER) == []
    narrow = Seen("ben", frozenset({"gpu"}), places=(WorkScope(queue="cpu"),))
    assert filled.jobs(JobFilter(seen=narrow)) == [], "what a queue gives is bounded, too"


def test_pages_go_on_where_they_ended(filled: Store) -> None:
    seen = WorkloadFilter(seen=Seen(everyones=True, places=(WorkScope(group="lab/"),)))
    whole = [one.name for one in filled.workloads(Array, seen)]
    paged: list[str] = []
    while page := filled.workloads(Array, seen, after=paged[-1] if paged else "", limit=1):
        paged += [one.name for one in page]
    assert paged == whole
    assert len(whole) == len([group for group in GROUPS if WorkScope(group="lab/").holds("", group)])


def test_events_of_arrays_and_job_sets_are_their_owners_and_of_their_place_also_when_these_are_gone(
    store: Store,
) -> None:
    def ended(name: str, by: str, queue: str, group: str) -> EventRecord:
        row = Array(name, name=name, submitted_by=by, submitter_uid=1001, queue=queue, group=group)
        return EventRecord(None, 1.0, ArrayDeleted(name, name), group, row)

    told = [ended("hers", "ann", "gpu", "lab/1"), ended("his", "ben", "cpu", "")]
    told.append(EventRecord(None, 1.0, NodeRecovered("e", "n", "all", 1.0)))
    store.commit(Changes(events=dict(enumerate(told))))
    for seen, names in (
        (None, ["hers", "his", "n"]),
        (Seen("ann"), ["hers"]),
        (Seen("ann", uid=1001), ["hers"]),
        (Seen("ann", uid=1009), []),
        (Seen("cat", frozenset({"cpu"})), ["his"]),
        (Seen(everyones=True, places=(WorkScope(group="lab/"),)), ["hers"]),
        (Seen("ben", places=(WorkScope(group="lab/"),)), []),
    ):
        found = store.events(limit=9, where=EventFilter(seen=seen))
        assert [getattr(one.event, "name", None) or getattr(one.event, "node", "") for one in found] == names, seen
