"""What every store answers to readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access.group import Grouped
from holdfast.domain.job import Attempt, ChildOf, Job, JobState, Node, Queue, Resources, Run
from holdfast.domain.lifecycle import AttemptStatus, EntityKind, HistoryRow, Outcome, RunStatus, attempt_id
from holdfast.domain.record import evolve
from holdfast.domain.workloads.base import Quarantined
from holdfast.errors import NotFound
from holdfast.ports.events import EventFilter
from holdfast.ports.store import Changes, JobFilter, Submission

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.ports.store import Store

SPEC = '{"command":["true"],"name":"a"}'


def job(job_id: str, name: str = "a", **given: object) -> Job:
    made = Job(job_id, name, "default", 0, 100.0, SPEC, Resources(500, 1 << 30, 1), queued_at=100.0, updated_at=100.0)
    return evolve(made, **given)  # type: ignore[arg-type] # fields by name


def submit(store: Store, *ids: str) -> Sequence[Job]:
    store.submit(Submission([job(job_id) for job_id in ids]))
    return store.jobs_by_id(ids)


def changes_of(*records: Job | Attempt | Run | HistoryRow | Node, handled: Sequence[int] = ()) -> Changes:
    changes = Changes(handled=list(handled))
    for record in records:
        match record:
            case Job():
                changes.jobs[record.id] = record
            case Attempt():
                changes.attempts[record.key] = record
            case Run():
                changes.runs[record.uid] = record
            case HistoryRow():
                changes.history[record.key] = record
            case Node():
                changes.nodes[record.executor, record.name] = record
    return changes


def run(job_id: str, attempt: int = 1, rank: int = 0, dispatch: int = 1, **given: object) -> Run:
    made = Run(f"{job_id}-{attempt}-{rank}-{dispatch}", job_id, attempt, rank)
    return evolve(made, **given)  # type: ignore[arg-type] # fields by name


def step(job_id: str, attempt: int = 1, seq: int = 0, **given: object) -> HistoryRow:
    made = HistoryRow(
        EntityKind.ATTEMPT, attempt_id(job_id, attempt), seq,
        "Start", AttemptStatus.PREPARED, AttemptStatus.CREATING, Outcome.SUCCESS, 1.0, 2.0,
    )  # fmt: skip
    return evolve(made, **given)  # type: ignore[arg-type] # fields by name


def test_a_job_is_found_by_id_then_by_newest_name_then_by_prefix(store: Store) -> None:
    store.submit(Submission([
        job("abcdef-1", "train"), job("abcdeg-2", "train"), job("train", "other"), job("abcdef-9", "abcdeg"),
    ]))  # fmt: skip
    assert store.job("abcdef-1").id == "abcdef-1"
    assert store.job("train").id == "train"
    assert store.job("other").id == "train"
    assert store.job("abcdeg").id == "abcdef-9"
    assert store.job("abcdeg-").id == "abcdeg-2"


def test_the_newest_of_a_name_is_found(store: Store) -> None:
    store.submit(Submission([job("b-000002", "train"), job("a-000001", "train")]))
    assert store.job("train").id == "a-000001"


@pytest.mark.parametrize("reference", ["", "abcde", "abcdex", "ABCDEF-1", "abcdef%", "abcde\udcff", "abcde\U0010ffff"])
def test_a_reference_nothing_answers_to_is_not_found(store: Store, reference: str) -> None:
    submit(store, "abcdef-1")
    with pytest.raises(NotFound):
        store.job(reference)


def test_of_several_jobs_of_one_name_a_part_of_the_id_tells_which(store: Store) -> None:
    store.submit(Submission([job("a1", "train"), job("a2", "train"), job("b1", "train"), job("a3", "other")]))
    assert (store.job("train@b").id, store.job("train@a2").id, store.job("other@a").id) == ("b1", "a2", "a3")
    for wrong in ("train@", "@a1", "other@b", "train@c", "train@a1x"):
        with pytest.raises(NotFound):
            store.job(wrong)
    with pytest.raises(NotFound, match="a1, a2"):
        store.job("train@a")


def test_an_ambiguous_prefix_lists_its_candidates(store: Store) -> None:
    submit(store, "abcdef-1", "abcdef-2")
    with pytest.raises(NotFound, match="abcdef-1, abcdef-2"):
        store.job("abcdef")


LISTED = {
    "j1": ("a", "default", JobState.QUEUED, {"team": "nlp", "tier": "1"}),
    "j2": ("b", "default", JobState.RUNNING, {"team": "nlp"}),
    "j3": ("a", "gpu", JobState.FAILED, {"team": "cv"}),
    "j4": ("b", "gpu", JobState.QUEUED, {}),
}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (JobFilter(), ["j1", "j2", "j3", "j4"]),
        (JobFilter(states=frozenset({JobState.QUEUED, JobState.FAILED})), ["j1", "j3", "j4"]),
        (JobFilter(states=frozenset()), []),
        (JobFilter(queue="gpu"), ["j3", "j4"]),
        (JobFilter(name="a"), ["j1", "j3"]),
        (JobFilter(labels=(("team", "nlp"),)), ["j1", "j2"]),
        (JobFilter(labels=(("team", "nlp"), ("tier", "1"))), ["j1"]),
        (JobFilter(labels=(("team", "nlp"), ("team", "cv"))), []),
        (JobFilter(job_set="s1"), ["j3", "j4"]),
        (JobFilter(frozenset({JobState.QUEUED, JobState.RUNNING}), job_set="s1"), ["j4"]),
        (JobFilter(frozenset(), job_set="s1"), []),
        (JobFilter(job_set="s2"), []),
        (JobFilter(frozenset({JobState.QUEUED}), "default", "a", labels=(("team", "nlp"),)), ["j1"]),
        (JobFilter(queue="nowhere"), []),
        (JobFilter(ids=frozenset({"j4", "j1", "none"})), ["j1", "j4"]),
        (JobFilter(queue="gpu", ids=frozenset({"j4", "j1"})), ["j4"]),
        (JobFilter(ids=frozenset()), []),
    ],
)
def test_every_field_of_a_filter_must_hold(store: Store, where: JobFilter, expected: list[str]) -> None:
    labels = {job_id: given for job_id, (*_, given) in LISTED.items()}
    in_set = {"j3": ChildOf("s1", "workers", 0), "j4": ChildOf("s1", "workers", 1)}
    jobs = [
        job(job_id, name, queue=queue, state=state, child=in_set.get(job_id))
        for job_id, (name, queue, state, _) in LISTED.items()
    ]
    store.put_entry(Queue("gpu"))
    store.submit(Submission(jobs, labels))
    assert [each.id for each in store.jobs(where)] == expected


def test_lists_go_on_after_the_last_job_seen(store: Store) -> None:
    jobs = submit(store, "j1", "j2", "j3", "j4")
    seen = store.jobs(JobFilter(), limit=2)
    assert [each.id for each in seen] == ["j1", "j2"]
    assert store.jobs(JobFilter(), after=seen[-1].seq, limit=1) == [jobs[2]]
    assert store.jobs(JobFilter(), after=jobs[-1].seq) == []
    assert store.jobs(JobFilter(), limit=0) == []


def test_states_are_asked_for_and_counted(store: Store) -> None:
    _, second, _ = submit(store, "j1", "j2", "j3")
    store.commit(changes_of(evolve(second, state=JobState.HELD, started_at=2.0)))
    assert store.job_states(["j2", "j9", "j1"]) == {"j1": (JobState.QUEUED, False), "j2": (JobState.HELD, True)}
    assert store.count_by_state() == {"Queued": 2, "Held": 1}


def test_the_tasks_of_an_array_are_counted_by_themselves_and_can_be_left_out_of_lists(store: Store) -> None:
    places = {"j1": ChildOf("a1", "", 0), "j2": ChildOf("a1", "", 7), "j3": ChildOf("s1", "workers", 0), "j4": None}
    store.submit(Submission([job(job_id, job_id, child=child) for job_id, child in places.items()]))
    store.commit(changes_of(evolve(store.job("j2"), state=JobState.HELD)))
    assert store.count_by_state("a1") == {"Queued": 1, "Held": 1}
    assert (store.count_by_state("s1"), store.count_by_state("a2")) == ({"Queued": 1}, {})
    assert [each.id for each in store.jobs(JobFilter(tasks=False))] == ["j3", "j4"]
    assert [each.child for each in store.jobs(JobFilter(job_set="a1"))] == [places["j1"], places["j2"]]


def test_attempts_runs_and_history_come_in_order(store: Store) -> None:
    submit(store, "job-000001")
    places = [(10, 0, 1), (2, 1, 2), (2, 10, 1), (2, 2, 1), (2, 0, 10)]
    store.commit(changes_of(
        *(Attempt("job-000001", number) for number in (10, 2)),
        *(run("job-000001", *place) for place in places),
        *(step("job-000001", attempt, seq) for attempt, seq in ((10, 0), (2, 10), (2, 9))),
    ))  # fmt: skip
    assert [each.number for each in store.attempts("job-000001")] == [2, 10]
    assert [(each.attempt, each.rank, each.dispatch) for each in store.runs("job-000001")] == [
        (2, 2, 1), (2, 10, 1), (2, 1, 2), (2, 0, 10), (10, 0, 1),
    ]  # fmt: skip
    assert [(each.attempt, each.seq) for each in store.history("job-000001")] == [(2, 9), (2, 10), (10, 0)]


def test_an_unknown_job_has_no_attempts_runs_or_history(store: Store) -> None:
    assert [*store.attempts("x"), *store.runs("x"), *store.history("x")] == []


def test_running_lists_runs_that_have_not_ended(store: Store) -> None:
    submit(store, "j1", "j2")
    statuses = enumerate((RunStatus.RUNNING, RunStatus.ERROR, RunStatus.PENDING))
    ranks = [(job_id, rank, status) for rank, status in statuses for job_id in ("j2", "j1")]
    store.commit(changes_of(*(run(job_id, rank=rank, status=status) for job_id, rank, status in ranks)))
    assert [each.uid for each in store.running()] == ["j1-1-0-1", "j1-1-2-1", "j2-1-0-1", "j2-1-2-1"]


def test_what_is_quarantined_is_known_until_it_is_released_and_found_among_jobs(store: Store) -> None:
    submit(store, "one", "two", "three")
    first, second = (Quarantined(key, "gang", 5.0, f"reconciling it: {key} 🦊") for key in ("one", "two"))
    store.commit(Changes(quarantined={"one": first, "two": second, "a-set": Quarantined("a-set", "jobset", 6.0, "")}))
    store.commit(Changes(quarantined={"one": evolve(first, since=7.0), "two": None, "never": None}))
    known = {"one": evolve(first, since=7.0), "a-set": Quarantined("a-set", "jobset", 6.0, "")}
    assert store.quarantined() == store.load().quarantined == known
    assert [job.id for job in store.jobs(JobFilter(quarantined=True))] == ["one"]
    listed = store.listed(JobFilter())
    assert [job.id for job in listed.jobs] == ["one", "two", "three"]
    assert listed.quarantined["one"] == known["one"]
    assert "two" not in listed.quarantined


def test_only_jobs_with_a_reason_are_listed_where_that_is_asked_for(store: Store) -> None:
    submit(store, "one", "two")
    store.commit(Changes(jobs={"two": evolve(store.job("two"), reason="needs 1 cpu")}))
    assert [job.id for job in store.jobs(JobFilter(reasoned=True))] == ["two"]


def test_jobs_are_listed_by_who_submitted_them(store: Store) -> None:
    whose = {"j1": ("ann", 1001), "j2": ("ben", None), "j3": ("ann", 1001), "j4": ("", None)}
    store.submit(
        Submission([job(key, key, submitted_by=name, submitter_uid=uid) for key, (name, uid) in whose.items()])
    )
    found = store.jobs(JobFilter(submitted_by="ann"))
    assert [(each.id, each.submitted_by, each.submitter_uid) for each in found] == [
        ("j1", *whose["j1"]),
        ("j3", *whose["j3"]),
    ]
    store.commit(changes_of(evolve(found[1], state=JobState.HELD)))
    assert [each.id for each in store.jobs(JobFilter(submitted_by="ann", states=frozenset({JobState.HELD})))] == ["j3"]
    assert [each.id for each in store.jobs(JobFilter(submitted_by="ann"), after=found[0].seq, limit=5)] == ["j3"]
    assert [each.submitted_by for each in store.load().jobs] == ["ann", "ben", "ann", ""]


GROUPS = {"j1": "a", "j2": "a/b", "j3": "a/b/c", "j4": "a/bc", "j5": "", "j6": "a/b", "j7": "B é/☃ %_"}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("a", ["j1"]),
        ("a/b", ["j2", "j6"]),
        ("a/b/", ["j2", "j3", "j6"]),
        ("a/", ["j1", "j2", "j3", "j4", "j6"]),
        ("B é/☃ %_", ["j7"]),
        ("B é/", ["j7"]),
        ("b", []),
        ("a/b_", []),
    ],
)
def test_jobs_and_their_events_are_listed_by_group(store: Store, wanted: str, found: list[str]) -> None:
    store.submit(Submission([job(key, key, group=group) for key, group in GROUPS.items()]))
    where = Grouped.read(wanted)
    assert [each.id for each in store.jobs(JobFilter(group=where))] == found
    told = store.events(limit=99, where=EventFilter(group=where))
    assert [each.job_id for each in told] == found
    if found:
        store.commit(changes_of(evolve(store.job(found[-1]), state=JobState.HELD)))
        held = store.jobs(JobFilter(group=where, states=frozenset({JobState.HELD})))
        assert [(each.id, each.group) for each in held] == [(found[-1], GROUPS[found[-1]])]
        assert [each.job_id for each in store.events(after=told[-1].seq, limit=9, where=EventFilter(group=where))] == []
