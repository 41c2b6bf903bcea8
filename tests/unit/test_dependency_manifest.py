"""``dependsOn`` in manifests: what is read, what is refused, and what names are found to mean."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.native.job import read_job_manifest
from holdfast.dialects.native.writing import write_job
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import ArraySpec, Indexes
from holdfast.domain.workloads.dependencies import Condition, Dependency, DependencyKind, OnUnmet, waits_for
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import InvalidManifest
from holdfast.ports.store import Submission
from holdfast.service.submit import Submitter, WrittenJob
from tests.unit.conftest import VirtualClock, job_named
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from holdfast.errors import Problem

ARRAY = {"indices": "0-3"}
ALL = ("all", "team")
CONDITIONS = ("ok", "failed", "ended", "started", "index")


def read(value: object, **more: Any) -> tuple[tuple[Dependency, ...], list[Problem]]:  # noqa: ANN401 - any fields
    problems: list[Problem] = []
    spec = read_job_manifest({"name": "x", "command": ["x"], "dependsOn": value, **more}, path="", problems=problems)
    job = spec.job if isinstance(spec, ArraySpec) else spec
    return (() if job is None else job.after), problems


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("prep", Dependency("prep")),
        ("prep:ended", Dependency("prep", Condition.ENDED)),
        ("job/prep:failed", Dependency("prep", Condition.FAILED, target=DependencyKind.JOB)),
        ("jobset/team", Dependency("team", target=DependencyKind.JOB_SET)),
        ("prep@01m83w", Dependency("prep@01m83w")),
        ("sweep:index", Dependency("sweep", by_index=True)),
        ("array/sweep:index:ended", Dependency("sweep", Condition.ENDED, by_index=True, target=DependencyKind.ARRAY)),
        ({"name": "prep"}, Dependency("prep")),
        (
            {"name": "array/sweep", "condition": "started", "byIndex": True, "onUnmet": "hold"},
            Dependency("sweep", Condition.STARTED, OnUnmet.HOLD, by_index=True, target=DependencyKind.ARRAY),
        ),
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_each_form_is_read_alone_or_in_a_list_and_written_so_that_it_reads_back(
    written: object, expected: Dependency, *, listed: bool
) -> None:
    assert read([written] if listed else written, array=ARRAY) == ((expected,), [])
    job = JobSpec("x", ("x",), after=(expected,))
    assert read(write_job(job)["dependsOn"], array=ARRAY) == ((expected,), [])


@pytest.mark.parametrize(
    ("value", "more", "path", "message", "allowed"),
    [
        ("prep:okay", {}, "dependsOn", "'okay' is not a condition", CONDITIONS),
        (["a", "prep:ok:ended"], {}, "dependsOn[1]", "'prep:ok:ended' has two conditions", ()),
        (["what/prep"], {}, "dependsOn[0]", "'what' is not a kind of work", ("job", "array", "jobset")),
        (["pr ep"], {}, "dependsOn[0]", "'pr ep' is not the name or the id of", ()),
        ([7], {}, "dependsOn[0]", "must be text", ()),
        ([{}], {}, "dependsOn[0].name", "is required", ()),
        ([{"name": "a", "condition": "x"}], {}, "dependsOn[0].condition", "'x' is not one of", CONDITIONS[:4]),
        ([{"name": "a", "onUnmet": "x"}], {}, "dependsOn[0].onUnmet", "'x' is not one of", ("cancel", "hold", "run")),
        (
            [{"name": "a", "when": "x"}],
            {},
            "dependsOn[0].when",
            "",
            ("byIndex", "condition", "name", "onUnmet"),
        ),
        (["sweep:index"], {}, "dependsOn[0]", "only the tasks of an array can each wait for a task", ()),
        (["a"] * 1001, {}, "dependsOn", "has 1001 dependencies; at most 1000 are allowed", ()),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(
    value: object, more: dict[str, object], path: str, message: str, allowed: tuple[str, ...]
) -> None:
    _, [problem] = read(value, **more)
    assert (problem.path, problem.allowed) == (path, allowed)
    assert message in problem.message


class Numbers:
    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"id{next(self._numbers):06}"


@pytest.fixture
def submitter() -> Submitter:
    store = MemoryStore()
    store.submit(Submission([], owner=JobSet("set-id", name="team")))
    return Submitter(store, VirtualClock(), Numbers())


def array(name: str, *after: Dependency, total: int = 4) -> WrittenJob:
    spec = job_named(name, after=after)
    return WrittenJob(spec, array=ArraySpec(spec, (Indexes(0, total - 1),)), manifest="{}")


def job(name: str, *after: Dependency) -> JobSpec:
    return job_named(name, after=after)


def refused(submitter: Submitter, *items: JobSpec | WrittenJob) -> list[tuple[str, str, tuple[str, ...]]]:
    with pytest.raises(InvalidManifest) as raised:
        submitter.submit_many(items)
    assert submitter.store.count_by_state() == {}
    return [(one.path, one.message, one.allowed) for one in raised.value.problems]


def test_circles_are_refused_with_the_way_around(submitter: Submitter) -> None:
    items: list[JobSpec | WrittenJob] = [
        job("a", Dependency("b")),
        job("b", Dependency("c"), Dependency("team")),
        array("c", Dependency("a")),
        job("outside", Dependency("a")),
        job("me", Dependency("me")),
        array("x", Dependency("y", by_index=True)),
        array("y", Dependency("x", by_index=True)),
    ]
    assert refused(submitter, *items) == [
        ("items[0].spec.dependsOn[0]", "waits for itself through others: a -> b -> c -> a", ()),
        ("items[4].spec.dependsOn[0]", "job 'me' cannot wait for itself", ()),
        ("items[5].spec.dependsOn[0]", "waits for itself through others: x -> y -> x", ()),
    ]


def test_two_circles_through_one_job_are_both_told(submitter: Submitter) -> None:
    items: list[JobSpec | WrittenJob] = [
        job("a", Dependency("b"), Dependency("c")),
        job("b", Dependency("a")),
        job("c", Dependency("a")),
    ]
    told = sorted(message for _, message, _ in refused(submitter, *items))
    assert told == [f"waits for itself through others: a -> {other} -> a" for other in "bc"]


def test_a_name_that_means_several_things_is_refused_unless_its_kind_is_said(submitter: Submitter) -> None:
    one, other = job("same"), array("same")
    told = refused(submitter, one, other, job("then", Dependency("same")))
    assert [message for _, message, _ in told] == ["2 items of this submission are named 'same'"]
    assert told[0][2] == ("job/same", "array/same")
    named = Dependency("same", target=DependencyKind.ARRAY)
    [*_, then] = submitter.submit_many([one, other, job("then", named)])
    submitter.submit(job("team"))
    assert then.created is not None
    with pytest.raises(InvalidManifest) as raised:
        submitter.submit(job("last", Dependency("team")))
    [problem] = raised.value.problems
    assert (problem.message, problem.allowed) == ("more than one workload is named 'team'", ("job/team", "jobset/team"))
    assert submitter.submit(job("last", Dependency("team", target=DependencyKind.JOB_SET))).reason == waits_for(
        [Dependency("team", target=DependencyKind.JOB_SET)]
    )


@pytest.mark.parametrize(
    ("item", "message", "allowed"),
    [
        (job("x", Dependency("nothing")), "no job, array or job set has the id or name 'nothing'", ALL),
        (
            job("x", Dependency("nothing", target=DependencyKind.ARRAY)),
            "no array has the id or name 'nothing'",
            ALL,
        ),
        (
            job("x", Dependency("all", Condition.STARTED)),
            "only a job's start can be waited for, not that of array 'all'",
            ("ok", "failed", "ended"),
        ),
        (
            job("x", Dependency("team", Condition.STARTED)),
            "only a job's start can be waited for, not that of job set 'team'",
            ("ok", "failed", "ended"),
        ),
        (array("x", Dependency("team", by_index=True)), "job set 'team' has no tasks to wait for by index", ()),
        (array("x", Dependency("all", by_index=True), total=9), "array 'all' has no task 4 to wait for", ()),
    ],
)
def test_what_cannot_be_waited_for_is_refused(
    submitter: Submitter, item: JobSpec | WrittenJob, message: str, allowed: tuple[str, ...]
) -> None:
    submitter.submit_array(array("all"))
    with pytest.raises(InvalidManifest) as raised:
        submitter.submit_many([item])
    [problem] = raised.value.problems
    assert (problem.path, problem.message, problem.allowed) == ("spec.dependsOn[0]", message, allowed)
    assert problem.hint or allowed


def test_without_atomic_what_waits_for_something_refused_is_refused_too(submitter: Submitter) -> None:
    items: list[JobSpec | WrittenJob] = [
        job("last", Dependency("middle")),
        job("middle", Dependency("first")),
        job("other"),
    ]
    items.append(evolve(job("first"), queue="nowhere"))
    outcomes = submitter.submit_many(items, atomic=False)
    assert [one.created is not None for one in outcomes] == [False, False, True, False]
    assert "waits for 'middle', which is refused" in str(outcomes[0].error)


def test_sending_a_file_again_with_its_key_answers_as_before(submitter: Submitter) -> None:
    items: list[JobSpec | WrittenJob] = [job("then", Dependency("all")), array("all"), job("first")]
    first = submitter.submit_many(items, key="k")
    again = submitter.submit_many(items, key="k")
    assert [one.created and one.created.id for one in again] == [one.created and one.created.id for one in first]
    assert submitter.store.count_by_state() == {"Waiting": 1, "Queued": 1}
    with pytest.raises(InvalidManifest, match="1 of 3 manifests are not valid"):
        submitter.submit_many(items, key="other")


def test_names_in_the_same_file_come_before_what_is_stored(submitter: Submitter) -> None:
    old = submitter.submit(job("prep"))
    [then, new] = submitter.submit_many([job("then", Dependency("prep")), job("prep")])
    assert then.created is not None
    assert new.created is not None
    assert f'"id":"{new.created.id}"' in then.created.spec
    assert old.id not in then.created.spec


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (1, "waits for job j0 to succeed"),
        (2, "waits for job j0 to succeed and job j1 to succeed"),
        (3, "waits for job j0 to succeed, job j1 to succeed and job j2 to succeed"),
        (40, "waits for job j0 to succeed, job j1 to succeed and 38 more"),
    ],
)
def test_a_reason_names_the_first_and_counts_the_others(left: int, expected: str) -> None:
    assert waits_for([Dependency(f"j{number}") for number in range(left)]) == expected
