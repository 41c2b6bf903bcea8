"""What is asked for at one moment: of two callers who exclude each other one is accepted, and the other is told why.

Each of them has looked before any of them writes; every store is a connection of its own.
"""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pytest

from holdfast.compiled.codec import dump_spec, load_array
from holdfast.domain.audit import ACCEPTED, Act
from holdfast.domain.job import ChildOf, Job, JobState, Node, Queue, Resources
from holdfast.domain.notifications.notification import DeliveryState
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, ArrayState, Indexes, task_id
from holdfast.domain.workloads.array.rerun import TaskChoice
from holdfast.domain.workloads.dependencies import Dependency, DependencyKind
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Conflict, NotFound, VersionConflict
from holdfast.ports.entries import QUEUE
from holdfast.ports.notifications import NotificationFilter
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.ports.workloads import Rerun
from holdfast.service.jobsets.sets import SetWriter
from holdfast.service.operations.nodes import Nodes
from holdfast.service.operations.notifiers import Notifications
from holdfast.service.reruns import Reran, rerun
from holdfast.service.reshape import reshape
from holdfast.service.steering.arrays import ARRAYS
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobs import JOBS
from holdfast.service.submit import Submitter, WrittenJob
from tests.contract.test_store_notifications import BY, told
from tests.contract.test_store_versions import at_once
from tests.unit.conftest import VirtualClock
from tests.unit.jobset_lab import group, manifest
from tests.unit.jobset_service import Counting

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports.store import Store

CALLERS = 4


class Place(Protocol):
    def open(self) -> Store: ...


class Together(VirtualClock):
    """Whoever has looked asks for the time, and goes on once the others have looked, too."""

    def __init__(self, looked: threading.Barrier) -> None:
        super().__init__()
        self._looked, self._has_looked = looked, False

    def now(self) -> float:
        if not self._has_looked:
            self._has_looked = True
            self._looked.wait()
        return super().now()


def array(key: str, tasks: int = 6) -> Array:
    """An array that was cancelled before any of its tasks was made."""
    spec = dump_spec(ArraySpec(JobSpec(key, ("true",)), (Indexes(0, tasks - 1),)))
    return Array(id=key, name=key, spec=spec, created_at=1.0, state=ArrayState(status="Cancelled"))


def tasks_of(one: Array) -> list[int]:
    return [*load_array(one.spec).every_index()]


class Callers:
    """People who rerun tasks of one array at one moment: whoever has looked waits until all have."""

    def __init__(self, place: Place, ids: Counting) -> None:
        self.reran: list[Reran] = []
        self._place = place
        self._ids = ids
        self._looked = threading.Barrier(CALLERS)
        self._lock = threading.Lock()

    def rerun(self, indexes: set[int], name: str = "") -> Callable[[], object]:
        submitter, looked = Submitter(self._place.open(), VirtualClock(), self._ids), list[bool]()

        def change(spec: ArraySpec, unused: str) -> ArraySpec:
            if not looked:
                looked.append(True)
                self._looked.wait()
            return evolve(spec, job=evolve(spec.job, name=name or unused))

        def ask() -> None:
            found = rerun(submitter, "sweep", TaskChoice(cancelled=True, indexes=frozenset(indexes)), change)
            with self._lock:
                self.reran.append(found)

        return ask


@pytest.fixture
def callers(place: Place) -> Callers:
    place.open().submit(Submission([], owner=array("sweep")))
    return Callers(place, Counting())


def test_of_reruns_at_one_moment_one_is_accepted_and_the_others_are_told_which(callers: Callers, store: Store) -> None:
    raised = at_once([callers.rerun({1, 3}, f"mine-{number}") for number in range(CALLERS)])
    [won] = callers.reran
    assert [one.name for one in store.workloads(Array)] == [won.array.name, "sweep"]
    assert [type(error) for error in raised] == [Conflict] * (CALLERS - 1)
    told = f"tasks 1,3 of array 'sweep' were rerun already: {won.array.name} ({won.array.id})"
    assert {str(error).partition("\n")[0] for error in raised} == {told}


def test_of_reruns_at_one_moment_each_gets_what_no_other_has(callers: Callers, store: Store) -> None:
    raised = at_once([callers.rerun({number, number + 1}, f"mine-{number}") for number in range(CALLERS)])
    made = [one for one in store.workloads(Array) if one.origins]
    assert sorted(index for one in made for index in tasks_of(one)) == [0, 1, 2, 3, 4]
    assert store.reran("sweep") == {index: one.id for one in made for index in tasks_of(one)}
    assert {bool(one.warnings) for one in callers.reran if len(tasks_of(one.array)) == 1} <= {True}
    assert len(raised) + len(callers.reran) == CALLERS


def test_reruns_at_one_moment_of_other_tasks_get_names_of_their_own(callers: Callers, store: Store) -> None:
    assert at_once([callers.rerun({number}) for number in range(CALLERS)]) == []
    names = [one.name for one in store.workloads(Array)]
    assert names == ["sweep", *(f"sweep-rerun-{number}" for number in range(1, CALLERS + 1))]


def claim(store: Store, new: str, of: str, number: int, *indexes: int) -> None:
    store.submit(Submission([], also=[array(new)], rerun=Rerun(new, of, "a", number, indexes)))


def test_a_task_is_run_again_from_the_array_that_had_it_last_and_by_one(store: Store) -> None:
    store.submit(Submission([], owner=array("a")))
    claim(store, "b", "a", 1, 0, 1, 2)
    claim(store, "c", "b", 2, 0, 1)
    assert store.reran("a") == {0: "c", 1: "c", 2: "b"}
    for number, (of, task) in enumerate((("a", 2), ("b", 1), ("a", 1))):
        with pytest.raises(VersionConflict):
            claim(store, f"no{number}", of, 1 if of == "a" else 2, 5, task)
    assert (store.reran("b"), [one.name for one in store.workloads(Array)]) == ({}, ["a", "b", "c"])
    store.commit(Changes(forgotten={"b": None}))
    with pytest.raises(VersionConflict):
        claim(store, "no", "a", 1, 0)
    with pytest.raises(NotFound):
        claim(store, "no", "b", 2, 2)
    claim(store, "d", "a", 1, 2)
    store.commit(Changes(forgotten={"c": None}))
    claim(store, "e", "a", 1, 0)
    with pytest.raises(VersionConflict):  # of one that never had it
        claim(store, "no", "d", 2, 0)
    assert Counter(store.reran("a").values()) == {"d": 1, "e": 1}


ROUNDS = 20


def job(job_id: str, **given: object) -> Job:
    made = Job(job_id, "a", "default", 0, 100.0, "{}", queued_at=100.0, updated_at=100.0)
    return evolve(made, **given)  # type: ignore[arg-type] # fields by name


@pytest.mark.parametrize("kind", ["job", "array"])
def test_of_a_submission_and_the_deletion_of_its_queue_one_is_accepted(place: Place, kind: str) -> None:
    submitting, deleting = place.open(), place.open()
    for number in range(ROUNDS):
        name = f"q{number}"
        submitting.put_entry(Queue(name))
        spec = dump_spec(ArraySpec(JobSpec(name, ("true",), queue=name), (Indexes(0, 1),)))
        work = Submission([job(name, queue=name)])
        if kind == "array":
            work = Submission([], also=[Array(id=name, name=name, spec=spec, created_at=1.0)])
        raised = at_once([partial(submitting.submit, work), partial(deleting.delete_entry, QUEUE, name)])
        assert [type(error) for error in raised] == [Conflict]
        is_there = name in submitting.catalogue().queues
        assert is_there is bool(submitting.jobs_by_id([name]) or submitting.workloads_by_id(Array, [name]))
        told = f"queue '{name}' still has" if is_there else f"queue '{name}' does not exist any more"
        assert str(raised[0]).startswith(told)


def test_a_queue_stays_while_an_array_has_tasks_to_make_for_it(store: Store) -> None:
    store.put_entry(Queue("q"))
    spec = dump_spec(ArraySpec(JobSpec("sweep", ("true",), queue="q"), (Indexes(0, 1),)))
    one = Array(id="a", name="sweep", spec=spec, created_at=1.0)
    store.submit(Submission([], also=[one]))
    with pytest.raises(Conflict, match="queue 'q' still has array 'sweep', which has not ended"):
        store.delete_entry(QUEUE, "q")
    assert "q" in store.catalogue().queues
    store.commit(Changes(workloads={"a": evolve(one, state=ArrayState(status="Failed"))}))
    store.delete_entry(QUEUE, "q")
    assert "q" not in store.catalogue().queues


def ended(store: Store, *ids: str) -> None:
    store.submit(Submission([job(job_id, spec=dump_spec(JobSpec("a", ("true",)))) for job_id in ids]))
    jobs = store.jobs_by_id(ids)
    store.commit(Changes({one.id: evolve(one, state=JobState.FAILED, ended_at=101.0) for one in jobs}))


def test_of_retries_at_one_moment_one_is_accepted(place: Place, store: Store) -> None:
    ended(store, "j1")
    looked = threading.Barrier(CALLERS)

    def change(spec: JobSpec) -> JobSpec:
        looked.wait()
        return spec

    people = [Control(JOBS, place.open(), VirtualClock()) for _ in range(CALLERS)]
    raised = at_once([lambda one=one: one.ask(Act.RETRY, "j1", what={"change": change}) for one in people])  # type: ignore[misc]
    assert [str(error).partition("\n")[0] for error in raised] == ["job 'j1' is about to be retried already"] * 3
    assert [type(error) for error in raised] == [Conflict] * 3
    assert [one.kind for one in store.requests(limit=9)][1:] == [RequestKind.RETRY]


def own_set(name: str, group: str, replicas: int = 1) -> Submission:
    """A set with one replicated job, and that job's jobs."""
    jobs = [
        job(f"{name}/{group}/{index}", name=f"{name}-{group}-{index}", child=ChildOf(f"id-{name}", group, index))
        for index in range(replicas)
    ]
    return Submission(jobs, owner=JobSet(id=f"id-{name}", name=name, created_at=1.0))


def test_of_two_sets_that_would_have_a_job_of_one_name_one_is_accepted(place: Place, store: Store) -> None:
    one, other = place.open(), place.open()
    for number in range(ROUNDS):
        first, second = own_set(f"s{number}-a", "b-c", 2), own_set(f"s{number}-a-b", "c", 3)
        raised = at_once([partial(one.submit, first), partial(other.submit, second)])
        assert [type(error) for error in raised] == [Conflict]
        made = store.jobs(JobFilter(name=f"s{number}-a-b-c-0"))
        assert len(made) == 1
        names = [f"'s{number}-a'", f"'s{number}-a-b'"]
        refused = names[made == store.jobs_by_id([f"s{number}-a/b-c/0"])]
        assert str(raised[0]).startswith(f"job set {refused} would have a job 's{number}-a-b-c-0', and so has job set ")


def test_a_set_may_have_jobs_of_names_that_no_set_has_any_more_or_that_others_have(store: Store) -> None:
    store.submit(own_set("a-b", "c"))
    store.submit(own_set("a", "b-d"))  # none of their jobs has a name of the other's
    with pytest.raises(Conflict, match="'a-b-c-0'"):
        store.submit(evolve(own_set("a", "b-c"), owner=JobSet(id="other", name="a-b-c", created_at=1.0)))
    store.commit(Changes(forgotten={"id-a-b": None, "id-a": None}))
    store.submit(Submission([job("alone", name="a-b-c-0")]))
    store.submit(Submission([job("task", name="e-f-0", child=ChildOf("array", "", 0))], also=[array("array")]))
    store.submit(own_set("a", "b-c"))
    store.submit(own_set("e", "f"))


def test_a_job_whose_retry_was_cancelled_is_retried_again(store: Store) -> None:
    ended(store, "j1", "j2")
    for kind in (RequestKind.RETRY, RequestKind.CANCEL, RequestKind.RETRY):
        store.append(Request(kind, ("j1",), 1.0))
    store.append(Request(RequestKind.RETRY, ("j2",), 1.0))
    with pytest.raises(NotFound, match="'gone' was deleted"):
        store.append(Request(RequestKind.RETRY, ("gone",), 1.0))


def test_of_a_retry_and_the_deletion_of_a_job_one_is_accepted(place: Place) -> None:
    retrying, deleting = place.open(), place.open()
    ids = [f"j{number}" for number in range(ROUNDS)]
    ended(retrying, *ids)
    for key in ids:
        request = Request(RequestKind.RETRY, (key,), 1.0)
        raised = at_once([partial(retrying.append, request), partial(deleting.delete_finished, [key])])
        is_there = bool(retrying.jobs_by_id([key]))
        assert [type(error) for error in raised] == ([] if is_there else [NotFound])
        assert (key in deleting.files_to_discard("", limit=99)) is not is_there


def test_a_queue_stays_while_a_job_of_it_is_about_to_be_retried_and_no_job_is_retried_into_none(store: Store) -> None:
    for name in ("q1", "q2"):
        store.put_entry(Queue(name))
    store.submit(Submission([job("j1", queue="q1"), job("j2", queue="q2")]))
    jobs = store.jobs_by_id(["j1", "j2"])
    store.commit(Changes({one.id: evolve(one, state=JobState.FAILED, ended_at=101.0) for one in jobs}))
    store.append(Request(RequestKind.RETRY, ("j1",), 1.0))
    with pytest.raises(Conflict, match="queue 'q1' still has jobs"):
        store.delete_entry(QUEUE, "q1")
    store.delete_entry(QUEUE, "q2")
    with pytest.raises(Conflict, match="queue 'q2' does not exist any more"):
        store.append(Request(RequestKind.RETRY, ("j2",), 1.0))


@pytest.mark.parametrize("reason", ["", "a noisy fan"])
def test_a_node_is_drained_whoever_cordons_it_at_the_same_moment(place: Place, store: Store, reason: str) -> None:
    for number in range(ROUNDS // 2):
        name, looked = f"n{number}", threading.Barrier(2)
        store.commit(Changes(nodes={("local", name): Node(name, "local", Resources(1, 1, 0), seen_at=1.0)}))
        one, other = (Nodes(place.open(), Together(looked)) for _ in range(2))
        cordon, drain = partial(one.cordon, BY, name, reason), partial(other.cordon, BY, name, drain=True)
        assert at_once([cordon, drain]) == []
        found = store.catalogue().cordons[name]
        assert (found.drain, found.reason) == (True, reason)


def test_of_replays_at_one_moment_one_is_accepted(place: Place, store: Store) -> None:
    ids = [f"n{number}" for number in range(ROUNDS // 2)]
    store.commit(Changes(notifications=[told(key) for key in ids]))
    store.settle_notifications([store.notification(key).delivered(6.0) for key in ids])
    for key in ids:
        looked = threading.Barrier(CALLERS)
        people = [Notifications(place.open(), Together(looked)) for _ in range(CALLERS)]
        raised = at_once([partial(one.replay, BY, key) for one in people])
        assert [str(error).partition("\n")[0] for error in raised] == [
            f"notification {key} is still waiting for delivery"
        ] * 3
    assert [one.entry.name for one in store.audit(limit=99) if one.entry.outcome == ACCEPTED] == ids


def test_of_a_replay_and_the_deletion_of_a_notification_one_is_accepted(place: Place, store: Store) -> None:
    replaying, deleting = place.open(), place.open()
    for number in range(ROUNDS):
        key = f"n{number}"
        store.commit(Changes(notifications=[told(key)]))
        store.settle_notifications([store.notification(key).delivered(6.0)])
        replay = partial(replaying.replay_notifications, [key], 7.0, caller=BY)
        assert at_once([replay, partial(deleting.delete_notifications, settled_before=50.0, limit=9)]) == []
        there = {one.id: one.state for one in store.notifications(NotificationFilter(), limit=99)}
        replayed = key in {one.entry.name for one in store.audit(limit=99)}
        assert there.get(key) == (DeliveryState.WAITING if replayed else None)


def limited(most: int, name: str) -> WrittenJob:
    spec = evolve(load_array(array(name).spec), max_running=most)
    return WrittenJob(spec.job, array=spec, manifest=f"limit {most}")


@pytest.mark.parametrize("last", [RequestKind.DELETE, RequestKind.CANCEL])
def test_nothing_is_accepted_of_an_array_after_its_end_was_asked_for_at_the_same_moment(
    place: Place, store: Store, last: RequestKind
) -> None:
    for number in range(5):
        name, looked = f"sweep{number}", threading.Barrier(3)
        store.submit(Submission([], owner=evolve(array(name), state=ArrayState(held="by me"))))
        releasing, ending = (Control(ARRAYS, place.open(), Together(looked)) for _ in range(2))
        change = partial(reshape, place.open(), Together(looked), name, limited(2, name))
        raised = at_once(
            [change, partial(releasing.ask, Act.RELEASE, name), partial(ending.ask, Act(last.value), name)]
        )
        asked = [one.kind for one in store.asked_of(Array, name).requests]
        assert (asked[-1], len(asked) + len(raised)) == (last, 3)
        assert {type(error) for error in raised} <= {Conflict}
        assert all("it cannot be released" in str(error) or "cannot be changed" in str(error) for error in raised)


def test_of_changes_of_an_arrays_limits_at_one_moment_each_is_compared_with_the_one_before(
    place: Place, store: Store
) -> None:
    store.submit(Submission([], owner=evolve(array("sweep"), state=ArrayState())))
    looked, results = threading.Barrier(CALLERS), list[str]()
    stores = [place.open() for _ in range(CALLERS)]

    def change(one: Store) -> None:
        results.append(reshape(one, Together(looked), "sweep", limited(7, "sweep")).result)

    assert at_once([partial(change, one) for one in stores]) == []
    assert sorted(results) == ["unchanged"] * (CALLERS - 1) + ["updated"]


def ended_tasks(store: Store, states: dict[int, JobState]) -> list[str]:
    """Submit an array of six tasks that has ended, with those tasks of it; returns their ids."""
    state = ArrayState(made=6, status="Failed")
    store.submit(Submission([], owner=evolve(array("sweep"), state=state)))
    ids = {index: task_id("sweep", "sweep", index) for index in states}
    store.submit(Submission([job(key, child=ChildOf("sweep", "", index)) for index, key in ids.items()]))
    jobs = store.jobs_by_id([*ids.values()])
    store.commit(
        Changes({one.id: evolve(one, state=states[one.child.index], ended_at=9.0) for one in jobs if one.child})
    )
    return [*ids.values()]


def test_of_a_rerun_and_the_deletion_of_tasks_by_retention_one_is_accepted(place: Place, store: Store) -> None:
    first, second = ended_tasks(store, {0: JobState.FAILED, 1: JobState.FAILED})
    submitter, deleted = Submitter(place.open(), VirtualClock(), Counting()), list[int]()

    def change(spec: ArraySpec, unused: str) -> ArraySpec:
        if not deleted:
            deleted.append(store.delete_finished([first]))
        return evolve(spec, job=evolve(spec.job, name=unused))

    made = rerun(submitter, "sweep", TaskChoice(failed=True), change).array
    assert (deleted, tasks_of(made)) == ([1], [1])
    assert store.delete_finished([second]) == 0
    store.commit(Changes(workloads={made.id: evolve(made, state=ArrayState(status="Succeeded"))}))
    assert store.delete_finished([second]) == 1


def test_tasks_that_were_deleted_once_they_had_ended_are_not_rerun_as_cancelled(store: Store) -> None:
    states = {index: JobState.CANCELLED if index == 2 else JobState.SUCCEEDED for index in range(6)}
    ids, submitter = ended_tasks(store, states), Submitter(store, VirtualClock(), Counting())
    assert store.delete_finished([ids[0], ids[2]]) == 2
    with pytest.raises(NotFound, match="has been cancelled") as caught:
        rerun(submitter, "sweep", TaskChoice(cancelled=True), lambda spec, _: spec)
    assert caught.value.hint == "tasks 0,2 were deleted meanwhile, and can be run again by number: --index"
    chosen = TaskChoice(indexes=frozenset({2}))
    assert tasks_of(
        rerun(submitter, "sweep", chosen, lambda spec, name: evolve(spec, job=evolve(spec.job, name=name))).array
    ) == [2]


def test_tasks_stay_while_an_array_in_progress_waits_for_them_one_by_one(store: Store) -> None:
    ids = ended_tasks(store, {0: JobState.SUCCEEDED, 1: JobState.SUCCEEDED})
    after = Dependency("sweep", by_index=True, target=DependencyKind.ARRAY, id="sweep")
    spec = dump_spec(ArraySpec(JobSpec("b", ("true",), after=(after,)), (Indexes(0, 1),)))
    one = Array(id="b", name="b", spec=spec, created_at=1.0)
    store.submit(Submission([], also=[one]))
    assert store.delete_finished(ids) == 0
    store.commit(Changes(workloads={"b": evolve(one, state=ArrayState(status="Succeeded"))}))
    assert store.delete_finished(ids) == 2


class Pruning(Counting):
    """Gives ids, once what was waited for has ended and was deleted, as with a time to live of 0."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def new(self) -> str:
        jobs = self._store.jobs_by_id(["other"])
        self._store.commit(Changes({one.id: evolve(one, state=JobState.SUCCEEDED, ended_at=9.0) for one in jobs}))
        self._store.delete_finished(["other"])
        return super().new()


def test_work_that_names_what_is_deleted_at_the_same_moment_is_not_accepted(store: Store) -> None:
    store.submit(Submission([job("other", name="prepare")]))
    waiting = JobSpec("train", ("true",), after=(Dependency("prepare"),))
    with pytest.raises(Conflict, match="'other', which this waits for, was deleted meanwhile"):
        Submitter(store, VirtualClock(), Pruning(store)).submit(waiting)
    assert store.jobs(JobFilter()) == []


def job_waits(store: Store) -> None:
    waiting = JobSpec("train", ("true",), after=(Dependency("prepare"),))
    Submitter(store, VirtualClock(), Counting()).submit(waiting)


def array_waits(store: Store) -> None:
    spec = JobSpec("train", ("true",), after=(Dependency("prepare", id="other"),))
    store.submit(Submission([], also=[Array(id="a", name="a", spec=dump_spec(ArraySpec(spec, (Indexes(0, 1),))))]))


def set_waits(store: Store) -> None:
    document = manifest(replicatedJobs=[group("w")])
    document["metadata"]["annotations"] = {"holdfast.dev/depends-on": "prepare:ok"}
    SetWriter(store, VirtualClock(), Counting()).create(document)


def job_is_told(store: Store) -> Changes:
    [waiting] = store.jobs(JobFilter(name="train"))
    return Changes({waiting.id: evolve(waiting, state=JobState.QUEUED, ready_at=9.0)})


def array_is_told(store: Store) -> Changes:
    return Changes(workloads={"a": evolve(store.workload(Array, "a"), state=ArrayState(met=(0,)))})


def set_is_told(store: Store) -> Changes:
    row = store.workload(JobSet, "train")
    return Changes(workloads={row.id: evolve(row, state=evolve(row.state, met=(0,)))})


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize(
    ("waits", "told_of_it"), [(job_waits, job_is_told), (array_waits, array_is_told), (set_waits, set_is_told)]
)
def test_what_is_waited_for_stays_until_what_is_stored_of_who_waits_says_that_it_has_heard_of_the_end(
    store: Store, waits: Callable[[Store], None], told_of_it: Callable[[Store], Changes], *, is_new: bool
) -> None:
    """Whoever waits may have come after all that wait were read, and the controller may be killed before it tells."""
    read_before = store.waited_for()
    store.submit(Submission([job("other", name="prepare")]))
    store.commit(Changes(handled=[one.id for one in store.requests(limit=9)]))
    waits(store)
    [other] = store.jobs_by_id(["other"])
    store.commit(Changes({"other": evolve(other, state=JobState.SUCCEEDED, ended_at=9.0)}))
    assert store.delete_finished(["other"], waited=read_before if is_new else store.waited_for()) == 0
    store.commit(Changes(handled=[one.id for one in store.requests(limit=9)]))
    assert store.delete_finished(["other"], waited=store.waited_for(), dry_run=True) == 0
    assert store.delete_finished(["other"]) == 0
    store.commit(told_of_it(store))
    assert store.delete_finished(["other"]) == 1
