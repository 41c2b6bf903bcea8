"""What every store promises about what other systems call jobs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal
from holdfast.domain.access.grants import Seen
from holdfast.domain.access.group import Grouped
from holdfast.domain.audit import Act, Caller
from holdfast.domain.job import Job, JobState
from holdfast.domain.record import evolve
from holdfast.errors import Conflict
from holdfast.ports.names import ExternalName, NamedJob
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Changes, JobFilter, Submission

if TYPE_CHECKING:
    from holdfast.ports.store import Store


def job(job_id: str, at: float = 100.0) -> Job:
    return Job(job_id, "a", "default", 0, at, f'{{"name":"{job_id}"}}', queued_at=at, updated_at=at)


def submit(
    store: Store, names: dict[str, str], at: float = 100.0, digest: bytes = b"d", replaces: str = ""
) -> tuple[str, ...]:
    ends = (Request(RequestKind.CANCEL, (replaces,), at, "ann", "replaced"),) if replaces else ()
    external = {job_id: ExternalName(name, digest, replaces, ends=ends) for job_id, name in names.items()}
    return store.submit(Submission([job(job_id, at) for job_id in names], names=external))


def cancelled(store: Store) -> list[str]:
    """List the jobs whose end is asked for."""
    return [key for one in store.requests(limit=100) if one.kind is RequestKind.CANCEL for key in one.targets]


def ids(store: Store, name: str, *, below: bool) -> list[str]:
    return [one.id for one in store.jobs(JobFilter(named=Grouped(name, below=below)))]


def test_a_name_is_whose_it_was_first_and_the_others_of_a_submission_are_appended(store: Store) -> None:
    assert submit(store, {"j1": "x/a", "j2": "x/b"}) == ("j1", "j2")
    assert submit(store, {"j3": "x/b", "j4": "x/c", "j5": "x/c"}, 200.0, b"e") == ("j2", "j4", "j4")
    assert [one.id for one in store.jobs(JobFilter())] == ["j1", "j2", "j4"]
    assert store.named(["x/b", "x/c", "x/nobody"]) == {
        "x/b": NamedJob("x/b", "j2", b"d", 100.0),
        "x/c": NamedJob("x/c", "j4", b"e", 200.0),
    }
    assert store.names_of(["j1", "j3", "j4"]) == {"j1": "x/a", "j4": "x/c"}
    assert submit(store, {"j6": "x/a"}) == ("j1",), "all of it may be known"
    assert store.names_of(["j6"]) == {}


def test_jobs_are_listed_by_a_name_and_by_those_below_it_and_never_by_how_a_text_begins(store: Store) -> None:
    names = ["x/a", "x/a/b", "x/a/b/c", "x/ab", "x/a-b", "x/a0", "y/a", "x/a/\U0010ffff", "x/\u65e5\u672c/%_"]
    submit(store, {f"j{at}": name for at, name in enumerate(names)})
    store.submit(Submission([job("nameless")]))
    assert ids(store, "x/a", below=False) == ["j0"]
    assert ids(store, "x/a", below=True) == ["j0", "j1", "j2", "j7"]
    assert ids(store, "x", below=True) == ["j0", "j1", "j2", "j3", "j4", "j5", "j7", "j8"]
    assert ids(store, "x/\u65e5\u672c", below=True) == ["j8"]
    assert ids(store, "x/a%", below=True) == []


def test_a_name_is_free_again_when_its_job_is_deleted(store: Store) -> None:
    submit(store, {"j1": "x/a"})
    ended = evolve(store.job("j1"), state=JobState.SUCCEEDED, ended_at=2.0)
    store.commit(Changes(jobs={"j1": ended}, handled=[1]))
    assert store.delete_finished(["j1"]) == 1
    assert store.named(["x/a"]) == {}
    assert submit(store, {"j2": "x/a"}) == ("j2",)


def test_a_submission_that_is_refused_takes_no_name(store: Store) -> None:
    external = {"j1": ExternalName("x/a")}
    with pytest.raises(Conflict):
        store.submit(Submission([evolve(job("j1"), queue="gone")], names=external))
    assert store.named(["x/a"]) == {}
    assert submit(store, {"j1": "x/a"}) == ("j1",)


def test_a_name_is_given_up_to_the_job_that_replaces_its_own_with_those_of_all_below(store: Store) -> None:
    submit(store, {"j1": "x/a", "j2": "x/a/b", "j3": "x/a/b/c", "j4": "x/ab", "j5": "x/a-b"})
    assert submit(store, {"j6": "x/a"}, 200.0, b"e", replaces="j1") == ("j6",)
    assert store.named(["x/a"]) == {"x/a": NamedJob("x/a", "j6", b"e", 200.0)}
    assert {one.name for one in store.beginning("")} == {"x/a", "x/ab", "x/a-b"}
    assert submit(store, {"j7": "x/a"}, replaces="j1") == ("j6",), "whose it is not any more does not give it up"
    assert submit(store, {"j8": "x/new"}, replaces="j1") == ("j8",), "nor what was deleted meanwhile"


def test_a_submission_that_is_refused_replaces_and_ends_nothing(store: Store) -> None:
    submit(store, {"j1": "x/a", "j2": "x/a/b"})
    external = {"j3": ExternalName("x/a", replaces="j1", ends=(Request(RequestKind.CANCEL, ("j1",), 100.0),))}
    with pytest.raises(Conflict):
        store.submit(Submission([evolve(job("j3"), queue="gone")], names=external))
    assert {one.job_id for one in store.beginning("x/")} == {"j1", "j2"}
    assert cancelled(store) == []


def test_what_replaces_a_job_is_appended_with_its_end_which_is_audited_as_asked_for_by_who_submits(
    store: Store,
) -> None:
    submit(store, {"j1": "x/a"})
    ends = (Request(RequestKind.CANCEL, ("j1",), 200.0, "ann", "replaced"),)
    ann, external = Caller(Principal("ann"), 200.0), ExternalName("x/a", b"e", "j1", ends=ends)
    both = ("j2", "j3")  # of which the first gets the name
    store.submit(
        Submission([job(key, 200.0) for key in both], names=dict.fromkeys(both, external), callers={"j2": ann})
    )
    kinds = [(one.kind, one.targets, one.actor) for one in store.requests(limit=10)][1:]
    assert kinds == [(RequestKind.SUBMIT, ("j2",), ""), (RequestKind.CANCEL, ("j1",), "ann")]
    logged = [(entry.act, entry.name, entry.detail) for _, entry in store.audit(limit=9)]
    assert sorted(logged) == [(Act.CANCEL, "j1", "replaced"), (Act.CREATE, "j2", "1 job")]


def test_names_are_listed_by_how_they_begin_wherever_that_ends(store: Store) -> None:
    last = "\U0010ffff"
    names = ["x/b", "x/a", "x/a/b", "x/ab", "y/a", f"x/a{last}", f"x/a{last}z", "x/\ud7ff", "x/\ue000", "x/%", "x/A"]
    submit(store, {f"j{at}": name for at, name in enumerate(names)})
    store.submit(Submission([job("nameless")]))

    def found(prefix: str) -> list[str]:
        return [one.name for one in store.beginning(prefix)]

    assert found("x/a") == ["x/a", "x/a/b", "x/ab", f"x/a{last}", f"x/a{last}z"], "in order of submission"
    assert found(f"x/a{last}") == [f"x/a{last}", f"x/a{last}z"]
    assert found("x/\ud7ff") == ["x/\ud7ff"]
    assert (found("x/%"), found("/a"), found(last)) == (["x/%"], [], [])
    assert found("") == names
    (listed,) = store.beginning("y")
    assert (listed.job_id, listed.state, listed.seq > 0) == ("j4", JobState.QUEUED, True)


def test_of_the_names_of_others_none_is_listed(store: Store) -> None:
    external = {key: ExternalName(f"x/{key}") for key in ("j1", "j2")}
    submitted = [evolve(job(key), submitted_by=who) for key, who in (("j1", "ann"), ("j2", "bob"))]
    store.submit(Submission(submitted, names=external))
    assert [one.job_id for one in store.beginning("x/", seen=Seen("bob"))] == ["j2"]


def test_of_many_who_replace_a_job_at_one_moment_one_does(store: Store) -> None:
    submit(store, {"old": "x/one", "kid": "x/one/kid"})
    with ThreadPoolExecutor(8) as threads:
        answers = set(threads.map(lambda at: submit(store, {f"n{at}": "x/one"}, replaces="old"), range(16)))
    assert len(answers) == 1
    assert {one.name for one in store.beginning("x/")} == {"x/one"}
    assert cancelled(store) == ["old"]


def test_of_many_who_want_a_name_at_one_moment_one_has_it(store: Store) -> None:
    def want(at: int) -> tuple[str, ...]:
        return submit(store, {f"a{at}": "x/one", f"b{at}": f"x/{at}"})

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(want, range(24)))
    [winner] = {first for first, _ in answers}
    assert [second for _, second in answers] == [f"b{at}" for at in range(24)]
    assert len(store.jobs(JobFilter())) == 25
    assert store.named(["x/one"])["x/one"].job_id == winner


def test_a_child_is_read_with_its_parent_and_keeps_it(store: Store) -> None:
    store.submit(Submission([job("j1"), evolve(job("j2"), parent="j1")]))
    assert [one.parent for one in store.jobs_by_id(["j1", "j2"])] == ["", "j1"]
    store.commit(Changes(jobs={"j2": evolve(store.job("j2"), state=JobState.HELD)}, new_jobs={"j3": job("j3")}))
    assert {one.id: one.parent for one in store.load().jobs} == {"j1": "", "j2": "j1", "j3": ""}
