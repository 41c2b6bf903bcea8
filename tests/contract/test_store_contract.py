"""What every store promises about submitting, committing and loading."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.containers import Capability, EngineInfo
from holdfast.domain.devices import Device
from holdfast.domain.failure import Cause, ContainerResult, EndedBy, Failure, PodEvent, RunOutcome
from holdfast.domain.job import Attempt, Job, JobState, Node, Queue, Resources, Run
from holdfast.domain.lifecycle import AttemptStatus, Ending, EntityKind, HistoryRow, Outcome, RunStatus, attempt_id
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, Considered, Decision, LimitUse
from holdfast.domain.record import evolve
from holdfast.errors import AlreadyExists, Conflict, Internal
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Changes, JobFilter, Submission

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.ports.store import Store
    from tests.contract.conftest import Place

SPEC = '{"command":["true"],"name":"a"}'


NAMED = (("licence/matlab", 1000), ("scratch", 20_000 << 30))
GPUS = (Device("GPU-1", 0, "NVIDIA A100", 1 << 35, "nvidia"), Device("gpu-1", 1, health="Xid 79", used_by="pid 7"))


def job(job_id: str, name: str = "a", **given: object) -> Job:
    made = Job(
        job_id,
        name,
        "default",
        0,
        100.0,
        SPEC,
        Resources(500, 1 << 30, 0, 250, NAMED),
        queued_at=100.0,
        updated_at=100.0,
    )
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


FULL_JOB = {
    "state": JobState.BACKOFF,
    "reason": "rule any → again",
    "attempt": 2,
    "queued_at": 101.5,
    "retry_at": 107.25,
    "updated_at": 106.0,
    "started_at": 102.0,
    "ended_at": 105.0,
    "counters": {"infra/any": 2},
    "retries": 2,
    "avoid_node": "node-7",
    "avoid_devices": ("GPU-1f00@node-7", "gpu-1@node-7"),
    "avoid_nodes": ("node-6", "node-7"),
    "tried": ("node-6", "node-7", "node-8"),
    "cancel_requested": True,
    "request": Resources(500, 3 << 30, 0, 250, NAMED),
}
OUTCOME = RunOutcome(
    containers=(ContainerResult(137, "main", 9, "OOMKilled", "bye", init=True), ContainerResult(None)),
    conditions=frozenset({"OOMKilled", "Evicted"}),
    ended_by=EndedBy.MEMORY,
    started=False,
    started_at=1.25,
    ended_at=2.5,
    node="node-7",
    executor="local",
    message="the ☃ message",
    log_tail=("one", "two \udcff broken"),
    events=(PodEvent("Warning", "Back-off", "BackOff"),),
    progress="50%",
    peak_memory=123,
)
FAILURE = Failure(
    cause=Cause.OOM_KILLED,
    conditions=frozenset({"OOMKilled"}),
    containers=OUTCOME.containers,
    category="oom",
    subcategory="cgroup",
    hint="ask for more",
    rank=3,
    node="node-7",
    executor="local",
    devices=("GPU-1f00",),
    started=False,
    ran_s=1.25,
    failed_at=2.5,
    message="killed",
    ended_by=EndedBy.MEMORY,
)
DECISION = Decision(
    action=Action.RETRY,
    code=DecisionCode.RETRY,
    reason="rule any matched",
    policy="infra",
    rule="any",
    rule_index=0,
    policy_revision=2,
    counter="infra/any",
    delay_s=1.5,
    avoid_node="node-7",
    avoid_devices=("GPU-1f00@node-7",),
    avoid_nodes=("node-6", "node-7"),
    memory=3 << 30,
    limits=(LimitUse("infra/any", 1, None),),
    considered=(Considered("infra", "any", matched=True, because="exit code 137 is In [137]"),),
)


# Submitting


def test_submitted_jobs_get_their_place_in_order(store: Store) -> None:
    assert store.submit(Submission([job("job-000001"), job("job-000002")])) == ("job-000001", "job-000002")
    store.submit(Submission([job("job-000000")]))
    listed = store.jobs(JobFilter())
    assert [each.id for each in listed] == ["job-000001", "job-000002", "job-000000"]
    assert [each.seq for each in listed] == sorted({each.seq for each in listed})
    assert listed[0] == job("job-000001", seq=listed[0].seq)


def test_a_submission_appends_one_request_to_take_its_jobs_in(store: Store) -> None:
    store.submit(Submission([job("job-000001"), job("job-000002", submitted_at=105.0)]))
    (request,) = store.requests(limit=10)
    assert evolve(request, id=0) == Request(RequestKind.SUBMIT, ("job-000001", "job-000002"), 105.0)
    assert request.id > 0


def test_submitting_nothing_leaves_nothing(store: Store) -> None:
    assert store.submit(Submission([], idempotency_key="k")) == ()
    assert store.requests(limit=10) == []


@pytest.mark.parametrize("ids", [("job-000001", "job-000003"), ("job-000003", "job-000003")])
def test_a_job_id_is_taken_once_and_then_nothing_of_the_submission_is_kept(store: Store, ids: tuple[str, ...]) -> None:
    submit(store, "job-000001")
    with pytest.raises(AlreadyExists) as raised:
        store.submit(Submission([job(job_id) for job_id in ("job-000002", *ids)], idempotency_key="k"))
    assert len(raised.value.problems) == 1
    assert [each.id for each in store.jobs(JobFilter())] == ["job-000001"]
    assert len(store.requests(limit=10)) == 1
    assert store.submit(Submission([job("job-000009")], idempotency_key="k")) == ("job-000009",)


def test_labels_of_a_job_that_is_not_submitted_are_a_defect_and_leave_nothing(store: Store) -> None:
    with pytest.raises(Internal):
        store.submit(Submission([job("job-000001")], {"job-000002": {"team": "nlp"}}))
    assert store.jobs(JobFilter()) == []


def test_a_known_idempotency_key_returns_the_first_answer(store: Store) -> None:
    first = Submission([job("job-000001")], idempotency_key="k", fingerprint="f")
    again = Submission([job("job-000002")], idempotency_key="k", fingerprint="f")
    assert store.submit(first) == store.submit(again) == ("job-000001",)
    assert len(store.jobs(JobFilter())) == len(store.requests(limit=10)) == 1


def test_an_idempotency_key_belongs_to_one_request(store: Store) -> None:
    store.submit(Submission([job("job-000001")], idempotency_key="k", fingerprint="f"))
    with pytest.raises(Conflict, match="'k'"):
        store.submit(Submission([job("job-000002")], idempotency_key="k", fingerprint="g"))
    assert len(store.jobs(JobFilter())) == 1


def test_requests_stay_in_order_of_arrival_until_handled(store: Store) -> None:
    for number, kind in enumerate((RequestKind.HOLD, RequestKind.CANCEL, RequestKind.RELEASE)):
        store.append(Request(kind, (f"job-{number}",), float(number), "ann", "tired"))
    assert [each.kind for each in store.requests(limit=2)] == [RequestKind.HOLD, RequestKind.CANCEL]
    first, second, third = store.requests(limit=10)
    assert (first.actor, first.reason, first.created_at, first.targets) == ("ann", "tired", 0.0, ("job-0",))
    store.commit(Changes(handled=[second.id, 12345]))
    assert store.requests(limit=10) == [first, third]


def test_a_handled_requests_id_is_not_given_again(store: Store) -> None:
    store.append(Request(RequestKind.HOLD, (), 1.0))
    (first,) = store.requests(limit=1)
    store.commit(Changes(handled=[first.id]))
    store.append(Request(RequestKind.HOLD, (), 2.0))
    assert store.requests(limit=1)[0].id > first.id


# Committing and loading


NEWS: Sequence[Callable[[Store], object]] = (
    lambda store: store.submit(Submission([job("j2")])),
    lambda store: store.append(Request(RequestKind.CANCEL, ("j1",), 1.0)),
    lambda store: store.put_entry(Queue("gpu")),
)


@pytest.mark.parametrize("news", NEWS)
def test_a_mark_differs_once_anybody_wants_something(place: Place, news: Callable[[Store], object]) -> None:
    store, other = place.open(), place.open()
    submit(store, "j1")
    store.commit(changes_of(handled=[one.id for one in store.requests(limit=9)]))
    quiet, known = store.mark(), store.news()
    assert (quiet, known) == (store.mark(), store.news())
    assert not known.is_asked
    news(other)
    assert quiet is None or store.mark() != quiet
    assert store.news() != known


def test_every_field_of_every_record_is_kept(store: Store) -> None:
    (first,) = submit(store, "job-000001")
    changed = evolve(first, **FULL_JOB)  # type: ignore[arg-type] # fields by name
    attempt = Attempt(
        first.id, 2, AttemptStatus.ERROR, 3.5, 1, 2, 1.5, 2.5, 3.5, Resources(1, 2, 3, 4, NAMED), Ending.FAILED,
        FAILURE, DECISION, 107.25, "out of memory",
    )  # fmt: skip
    finished = run(
        first.id, 2, 3, 2, status=RunStatus.ERROR, status_since=3.5, executor="local", node="node-7",
        request=Resources(4, 5, 0, 250, NAMED), devices=("GPU-1",), started_at=2.5, ended_at=3.5, outcome=OUTCOME,
        failure=FAILURE, decision=DECISION, ports={"http": 20_001},
    )  # fmt: skip
    row = step(first.id, 2, 1, outcome=Outcome.GIVE_UP, error_code="e", message="m", attempts=4)
    engine = EngineInfo("simulated", frozenset({Capability.IMAGES, Capability.INIT_CONTAINERS}))
    node = Node("node-7", "local", Resources(8000, 1 << 40, 8, 0, NAMED), {"zone": "a"}, 9.5, engine, GPUS)
    store.commit(changes_of(changed, attempt, finished, row, node))
    assert store.job(first.id) == changed
    assert store.attempts(first.id) == [attempt]
    assert store.runs(first.id) == [finished]
    assert store.history(first.id) == [row]
    assert store.nodes() == [node]


def test_a_successful_outcome_is_kept(store: Store) -> None:
    submit(store, "job-000001")
    outcome = RunOutcome((ContainerResult(0),), started_at=1.0, ended_at=2.0, node="n", executor="e", log_tail=("ok",))
    store.commit(changes_of(run("job-000001", outcome=outcome)))
    assert store.runs("job-000001")[0].outcome == outcome


def test_the_last_value_committed_wins(store: Store) -> None:
    submit(store, "job-000001")
    for tries in (1, 2):
        store.commit(changes_of(
            Attempt("job-000001", 1, tries=tries), run("job-000001", node=f"n{tries}"),
            step("job-000001", attempts=tries), Node("n", "e", Resources(tries)),
        ))  # fmt: skip
    assert [each.tries for each in store.attempts("job-000001")] == [2]
    assert [each.node for each in store.runs("job-000001")] == ["n2"]
    assert [each.attempts for each in store.history("job-000001")] == [2]
    assert [each.capacity.cpu_m for each in store.nodes()] == [2]


def test_a_commit_keeps_what_a_job_was_submitted_with(store: Store) -> None:
    (first,) = submit(store, "job-000001")
    store.commit(changes_of(evolve(first, state=JobState.HELD)))
    assert store.job(first.id) == evolve(first, state=JobState.HELD)


def test_committing_nothing_is_fine(store: Store) -> None:
    store.commit(Changes())
    assert store.load().jobs == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: job("job-unknown"),
        lambda: Attempt("job-unknown", 1),
        lambda: run("job-unknown"),
        lambda: step("job-unknown"),
    ],
)
def test_a_commit_about_an_unknown_job_leaves_nothing(
    store: Store, make: Callable[[], Job | Attempt | Run | HistoryRow]
) -> None:
    (first,) = submit(store, "job-000001")
    (request,) = store.requests(limit=1)
    good = (evolve(first, state=JobState.HELD), Attempt(first.id, 1), run(first.id), step(first.id))
    with pytest.raises(Internal):
        store.commit(changes_of(*good, Node("n", "e", Resources()), make(), handled=[request.id]))
    assert store.job(first.id) == first
    assert [*store.attempts(first.id), *store.runs(first.id), *store.history(first.id), *store.nodes()] == []
    assert store.requests(limit=1) == [request]


def test_a_snapshot_holds_what_is_going_on_and_nothing_else(store: Store) -> None:
    going, waiting, done = submit(store, "job-000003", "job-000001", "job-000002")
    going, done = evolve(going, state=JobState.RUNNING, attempt=2), evolve(done, state=JobState.SUCCEEDED)
    active = Attempt(going.id, 2, AttemptStatus.RUNNING, dispatch=2)
    current = [run(going.id, 2, rank, 2, status=RunStatus.RUNNING) for rank in (0, 1)]
    last = step(going.id, 2, 11)
    store.commit(changes_of(
        going, done, active, *current, last,
        Attempt(going.id, 1, AttemptStatus.ERROR, dispatch=1), run(going.id, 1),
        run(going.id, 2, 0, 1, status=RunStatus.TERMINATED),
        step(going.id, 1, 20), step(going.id, 2, 2), step(done.id, 1, 30), run(done.id),
        Attempt(done.id, 1, AttemptStatus.TERMINATED, dispatch=1),
    ))  # fmt: skip
    snapshot = store.load()
    assert snapshot.jobs == [going, waiting]
    assert snapshot.attempts == [active]
    assert snapshot.runs == current
    assert snapshot.history == {attempt_id(going.id, 2): last}


def test_a_snapshot_holds_what_last_happened_to_jobs_in_line_if_anything_did(store: Store) -> None:
    names = {f"job-{state}": state for state in JobState}
    store.submit(Submission([job(name, attempt=1) for name in (*names, "job-untouched")]))
    changed = [evolve(job(name, attempt=1), state=state, updated_at=101.0) for name, state in names.items()]
    store.commit(changes_of(*changed, *[step(each, 2, seq) for each in (*names, "job-untouched") for seq in (3, 4)]))
    in_line = {f"job-{state}" for state in (JobState.QUEUED, JobState.HELD)}
    assert store.load().history == {attempt_id(each, 2): step(each, 2, 4) for each in in_line}


def test_equal_specifications_and_requests_are_one_object_after_loading(store: Store) -> None:
    store.submit(Submission([job(f"job-{number}", spec="{" + " " * 100 + "}") for number in range(3)]))
    jobs = store.load().jobs
    assert len({id(each.spec) for each in jobs}) == 1


def test_jobs_by_id_come_in_order_of_submission_without_the_unknown(store: Store) -> None:
    submit(store, *(f"job-{number:06}" for number in range(2500)))
    wanted = [f"job-{number:06}" for number in range(2500, -1, -1)]
    found = store.jobs_by_id([*wanted, wanted[-1]])
    assert [each.id for each in found] == sorted(wanted)[:-1]


# Several users at once


def test_ten_equal_submissions_at_once_make_one_job(store: Store) -> None:
    answers: list[tuple[str, ...]] = []
    together = threading.Barrier(10)

    def send(number: int) -> None:
        together.wait()
        answers.append(store.submit(Submission([job(f"job-{number}")], idempotency_key="k", fingerprint="f")))

    threads = [threading.Thread(target=send, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(answers)) == len(store.jobs(JobFilter())) == 1
    assert len(answers) == 10


def test_of_ten_that_saw_the_same_newest_job_of_a_name_one_submits_another(store: Store) -> None:
    refused: list[AlreadyExists] = []
    together = threading.Barrier(10)

    def send(number: int, newest: str) -> None:
        together.wait()
        try:
            store.submit(Submission([job(f"job-{newest}-{number}")], newest=newest))
        except AlreadyExists as error:
            refused.append(error)

    for count in (1, 2):
        newest = max((each.id for each in store.jobs(JobFilter())), default="")
        threads = [threading.Thread(target=send, args=(number, newest)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store.jobs(JobFilter())) == len(store.requests(limit=10)) == count
        assert len(refused) == 9 * count


def test_submissions_and_commits_go_on_side_by_side(store: Store) -> None:
    (watched,) = submit(store, "watched")

    def send() -> None:
        for number in range(50):
            store.submit(Submission([job(f"job-{number:03}")]))

    sender = threading.Thread(target=send)
    sender.start()
    for number in range(1, 51):
        store.commit(changes_of(evolve(watched, attempt=number), Attempt(watched.id, number)))
        assert store.job(watched.id).attempt == len(store.attempts(watched.id)) == number
    sender.join()
    assert len(store.jobs(JobFilter())) == 51


def test_closing_twice_is_fine(store: Store) -> None:
    store.close()
    store.close()


def test_jobs_get_other_priorities_and_the_others_keep_theirs(store: Store) -> None:
    one, other = submit(store, "job00001", "job00002")
    changed = evolve(one, priority=-7)
    store.commit(Changes(jobs={one.id: changed}, priorities={one.id: -7}))
    assert store.jobs_by_id([one.id, other.id]) == [changed, other]


def test_a_job_gets_another_specification_and_the_one_it_shared_stays_with_the_others(store: Store) -> None:
    one, other = submit(store, "job00001", "job00002")
    asked = Resources(1000, share_m=250, named=(("licence/matlab", 1000),))
    changed = evolve(one, spec='{"command":["false"],"name":"a"}', request=asked)
    store.commit(Changes(jobs={one.id: changed}, specs={one.id: changed.spec}))
    assert store.jobs_by_id([one.id, other.id]) == [changed, other]
    again = evolve(changed, spec=SPEC)
    store.commit(Changes(jobs={one.id: again}, specs={one.id: SPEC}))
    assert [found.spec for found in store.jobs_by_id([one.id, other.id])] == [SPEC, SPEC]
