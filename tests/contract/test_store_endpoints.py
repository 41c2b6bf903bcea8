"""What every store promises about where programs of jobs answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import pytest

from holdfast.domain.access.grants import Seen
from holdfast.domain.access.group import Grouped
from holdfast.domain.job import Job, JobState
from holdfast.domain.record import evolve
from holdfast.errors import Conflict, NotFound, Refused
from holdfast.ports.endpoints import EndpointFilter, EndpointLimits, ProgramEndpoint
from holdfast.ports.store import Changes, Submission

if TYPE_CHECKING:
    from holdfast.ports.store import Store

NOW = 1_000.0
BOUNDS = EndpointLimits(in_all=10, of_a_run=4)
ALL = EndpointFilter("x")


class Place(Protocol):
    def open(self) -> Store: ...


def begin(store: Store, *job_ids: str, attempt: int = 1, owner: str = "ann") -> None:
    """Have jobs run, which are submitted if they are new."""
    known = {job.id: job for job in store.jobs_by_id(job_ids)}
    new = [
        Job(job_id, "a", "default", 0, 100.0, '{"name":"a"}', queued_at=100.0, updated_at=100.0, submitted_by=owner)
        for job_id in job_ids
        if job_id not in known
    ]
    store.submit(Submission(new))
    for job in store.jobs_by_id(job_ids):
        put(store, job, state=JobState.RUNNING, attempt=attempt)


def put(store: Store, job: Job, **given: object) -> None:
    store.commit(Changes(jobs={job.id: evolve(job, **given)}))  # type: ignore[arg-type] # fields by name


def end(store: Store, job_id: str, state: JobState = JobState.SUCCEEDED) -> None:
    put(store, store.job(job_id), state=state, ended_at=NOW)


def of(job_id: str, name: str, key: str = "", **given: object) -> ProgramEndpoint:
    made = ProgramEndpoint(key or f"{job_id}:{name}", "x", name, "here:1", job_id, f"called/{job_id}", 1, 0, {"a": "b"})
    return evolve(made, **given)  # type: ignore[arg-type] # fields by name


def register(store: Store, endpoint: ProgramEndpoint, *, now: float = NOW, renewed: bool = False) -> str:
    return store.register_endpoint(endpoint, now, BOUNDS, renewed=renewed)


def names(store: Store, where: EndpointFilter = ALL, now: float = NOW) -> list[str]:
    return [one.name for one in store.endpoints(where, now)]


def test_an_endpoint_is_found_as_it_was_registered_also_by_another_server(place: Place) -> None:
    store = place.open()
    begin(store, "j1")
    wanted = of("j1", "a/\u65e5", until=NOW + 60, rank=3)
    assert register(store, wanted) == wanted.id
    another = place.open()
    assert another.endpoint(wanted.id) == wanted
    assert another.endpoints(ALL, NOW) == [wanted]
    another.remove_endpoint(wanted.id)
    another.remove_endpoint(wanted.id)
    assert (store.endpoint(wanted.id), store.endpoints(ALL, NOW)) == (None, [])


def test_an_endpoint_is_hidden_once_its_attempt_does_not_run_and_stays_so(store: Store) -> None:
    begin(store, "j1", "j2")
    for job_id in ("j1", "j2"):
        register(store, of(job_id, job_id))
    assert names(store) == ["j1", "j2"]
    put(store, store.job("j1"), state=JobState.QUEUED)
    assert names(store) == ["j2"]
    begin(store, "j1", attempt=2)
    assert names(store) == ["j2"], "the attempt that runs now did not register it"
    register(store, of("j1", "j1", "new", attempt=2))
    assert store.endpoint("j1:j1") is None, "what the job's earlier attempts left is gone"
    end(store, "j2")
    assert names(store) == ["j1"]
    assert store.delete_endpoints(NOW, limit=100) == 1
    assert (store.delete_endpoints(NOW, limit=100), names(store)) == (0, ["j1"])


def test_of_what_does_not_run_nothing_is_registered(store: Store) -> None:
    begin(store, "j1", "j2")
    end(store, "j2")
    with pytest.raises(Conflict, match="another attempt"):
        register(store, of("j1", "a", attempt=2))
    with pytest.raises(Conflict, match="Succeeded"):
        register(store, of("j2", "a"))
    with pytest.raises(NotFound):
        register(store, of("nobody", "a"))
    assert names(store) == []


def test_a_lease_runs_out_unless_it_is_renewed(store: Store) -> None:
    begin(store, "j1")
    register(store, of("j1", "a", until=NOW + 10))
    register(store, of("j1", "b"))
    assert names(store, now=NOW + 9.9) == ["a", "b"]
    assert names(store, now=NOW + 10) == ["b"]
    register(store, of("j1", "a", until=NOW + 19), now=NOW + 9, renewed=True)
    assert names(store, now=NOW + 18) == ["a", "b"]
    assert store.delete_endpoints(NOW + 19, limit=100) == 1
    assert names(store, now=NOW) == ["b"]


def test_the_same_again_keeps_its_id_and_a_renewed_one_its_place(store: Store) -> None:
    begin(store, "j1")
    register(store, of("j1", "a", "one"))
    register(store, of("j1", "b", "two"))
    assert register(store, of("j1", "a", "three", metadata={})) == "one"
    assert register(store, of("j1", "a", "three", address="there:2")) == "three"
    assert register(store, of("j1", "c", "one", address="there:2"), renewed=True) == "one"
    found = store.endpoints(ALL, NOW)
    assert [(one.id, one.name, one.address) for one in found] == [
        ("one", "c", "there:2"),
        ("two", "b", "here:1"),
        ("three", "a", "there:2"),
    ]


def test_of_one_name_a_run_has_one_that_is_renewed(store: Store) -> None:
    begin(store, "j1", "j2")
    register(store, of("j1", "a", "old"), renewed=True)
    register(store, of("j1", "a", "other rank", rank=1), renewed=True)
    register(store, of("j2", "a", "other job"), renewed=True)
    register(store, of("j1", "a", "new"), renewed=True)
    assert [one.id for one in store.endpoints(ALL, NOW)] == ["other rank", "other job", "new"]


def test_nobody_takes_over_the_endpoint_of_another_job_before_that_is_over(store: Store) -> None:
    begin(store, "j1", "j2")
    register(store, of("j1", "a", "one"), renewed=True)
    with pytest.raises(Conflict, match="another job"):
        register(store, of("j2", "a", "one"), renewed=True)
    register(store, of("j1", "a", "one", rank=1), renewed=True)
    assert [one.rank for one in store.endpoints(ALL, NOW)] == [1], "a job may move its own"
    end(store, "j1")
    register(store, of("j2", "b", "one"), renewed=True)
    assert [(one.job_id, one.name) for one in store.endpoints(ALL, NOW)] == [("j2", "b")]


def test_there_are_so_many_of_a_run_and_so_many_in_all_and_those_that_are_over_do_not_count(store: Store) -> None:
    begin(store, "j1", "j2", "j3")
    for at in range(4):
        register(store, of("j1", str(at)))
    with pytest.raises(Refused, match="4 of a run"):
        register(store, of("j1", "more"))
    for job_id, at in [("j2", at) for at in range(4)] + [("j3", 0), ("j3", 1)]:
        register(store, of(job_id, str(at)))
    with pytest.raises(Refused, match="too many endpoints"):
        register(store, of("j3", "more"))
    assert register(store, of("j1", "0")) == "j1:0", "the same again is not one more"
    end(store, "j2")
    register(store, of("j3", "more"))
    assert len(names(store)) == 7
    begin(store, "j1", attempt=2)
    for at in range(4):
        register(store, of("j1", str(at), attempt=2))
    register(store, of("j1", "more", attempt=2, rank=1))


def test_no_more_are_registered_at_one_moment_than_there_may_be(store: Store) -> None:
    jobs = [f"j{at}" for at in range(6)]
    begin(store, *jobs)

    def wanted(at: int) -> bool:
        try:
            register(store, of(jobs[at % 6], str(at)))
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(wanted, range(24)))
    assert (sum(taken), len(names(store))) == (10, 10)


def test_endpoints_are_listed_by_name_by_segments_by_text_and_by_job(store: Store) -> None:
    begin(store, "j1", "j2", "j3")
    given = ["a", "a/b", "ab", "a/\U0010ffff", "a\U0010ffff", "a%", "A", "\ud7ffx"]
    for at, name in enumerate(given):
        register(store, of(f"j{at % 3 + 1}", name))
    register(store, of("j1", "a", "y", system="y"))
    assert names(store, EndpointFilter("x", name="a")) == ["a"]
    assert names(store, EndpointFilter("x", below=Grouped("a", below=True))) == ["a", "a/b", "a/\U0010ffff"]
    assert names(store, EndpointFilter("x", begins="a/")) == ["a/b", "a/\U0010ffff"]
    assert names(store, EndpointFilter("x", begins="a")) == given[:6]
    assert names(store, EndpointFilter("x", begins="a\U0010ffff")) == ["a\U0010ffff"]
    assert names(store, EndpointFilter("x", begins="\ud7ff")) == [given[7]]
    assert names(store, EndpointFilter("x", begins="\U0010ffff")) == []
    assert names(store, EndpointFilter("x", job_names=frozenset({"called/j2", "called/none"}))) == [
        "a/b",
        "a\U0010ffff",
        given[7],
    ]
    assert names(store, EndpointFilter("y")) == ["a"]


def test_nobody_finds_the_endpoints_of_jobs_that_are_hidden_from_them(store: Store) -> None:
    begin(store, "j1")
    begin(store, "j2", owner="ben")
    for job_id in ("j1", "j2"):
        register(store, of(job_id, job_id))
    assert names(store, EndpointFilter("x", seen=Seen("ben"))) == ["j2"]


def test_a_deleted_job_takes_its_endpoints_along(store: Store) -> None:
    begin(store, "j1")
    register(store, of("j1", "a", "one"))
    end(store, "j1")
    store.commit(Changes(handled=[1]))
    assert store.delete_finished(["j1"]) == 1
    assert store.endpoint("one") is None
