"""The databases mean the same: any sequence of operations has the same answers on SQLite and on PostgreSQL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.failure import ContainerResult, RunOutcome
from holdfast.domain.job import Attempt, ChildOf, Job, JobState, Node, Queue, Resources, Run
from holdfast.domain.lifecycle import AttemptStatus, EntityKind, HistoryRow, Outcome, RunStatus, SubStep, attempt_id
from holdfast.domain.policy.model import Action, RetryPolicy, RetrySettings, Rule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.state import JobSet, JobSetState, SetEvent, SetLogEntry
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.errors import HoldfastError
from holdfast.ports.entries import CATEGORY, POLICY, QUEUE
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.storage.sql import open_store
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports.store import Store
    from tests.postgres import PostgresServer

R = TypeVar("R")


def of(
    kind: Callable[..., R], *values: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]
) -> st.SearchStrategy[R]:
    """Build records by their fields; ``st.builds`` would look for names that are imported for type checkers only."""
    fields = st.tuples(st.tuples(*values), st.fixed_dictionaries(named))
    return fields.map(lambda given: kind(*given[0], **given[1]))


IDS = st.sampled_from(["aaaaaa-1", "aaaaaa-2", "bbbbbb-1", "bbbbbb-2", "cccccc"])
JOB_NAMES = st.sampled_from(["train", "eval", "aaaaaa-1"])
QUEUES = st.sampled_from(["default", "gpu"])
POLICIES = st.sampled_from(["infra", "bugs"])
CREATE = st.none() | st.booleans()
LABELS = st.dictionaries(st.sampled_from(["team", "tier"]), st.sampled_from(["x", "y"]))
REFERENCES = IDS | JOB_NAMES | st.sampled_from(["aaaaaa", "bbbbbb-", "cccccc", "cccc", "nobody"])
SETS = st.sampled_from(["s1", "s2", "s3"])
JOBS = of(
    Job,
    IDS,
    JOB_NAMES,
    QUEUES,
    st.integers(0, 2),
    st.sampled_from([1.0, 2.0]),
    st.just("{}"),
    child=st.none() | of(ChildOf, SETS, st.just("g"), st.integers(0, 2)),
)
ATTEMPTS = of(
    Attempt, IDS, st.integers(1, 3), st.sampled_from(AttemptStatus), dispatch=st.integers(0, 2), message=JOB_NAMES
)
OUTCOMES = st.none() | of(RunOutcome, st.just((ContainerResult(0),)), ended_at=st.sampled_from([1.0, 2.0]))
FILTERS = of(
    JobFilter,
    st.none() | st.frozensets(st.sampled_from(JobState)),
    st.none() | QUEUES,
    st.none() | JOB_NAMES,
    st.none() | SETS,
    LABELS.map(lambda labels: tuple(labels.items())),
)
JOB_SETS = of(
    JobSet,
    id=SETS,
    name=st.sampled_from(["x", "y", "s1"]),
    created_at=st.sampled_from([1.0, 2.0]),
    manifest=st.just("{}"),
    deleting=st.booleans(),
    state=of(JobSetState, restarts=st.integers(0, 2)),
)
LOGGED = of(SetLogEntry, set_id=SETS, at=st.just(1.0), what=of(SetEvent, st.just("Normal"), JOB_NAMES, JOB_NAMES))
POD_JOBS = of(KubeJobRecord, id=IDS, restart=st.integers(0, 2))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    job_id, attempt, rank, dispatch = draw(IDS), *(draw(st.integers(1, 2)) for _ in range(3))
    uid = f"{job_id}-{attempt}-{rank}-{dispatch}"
    return Run(uid, job_id, attempt, rank, draw(st.sampled_from(RunStatus)), outcome=draw(OUTCOMES))


@st.composite
def history_rows(draw: st.DrawFn) -> HistoryRow:
    statuses = draw(st.sampled_from(AttemptStatus)), draw(st.sampled_from(AttemptStatus))
    job_id, attempt, seq = draw(IDS), draw(st.integers(1, 3)), draw(st.integers(0, 3))
    steps = draw(st.sampled_from([(), (SubStep("rank 1", Outcome.FAILURE, "code", "why"),)]))
    outcome = draw(st.sampled_from(Outcome))
    name = attempt_id(job_id, attempt)
    return HistoryRow(EntityKind.ATTEMPT, name, seq, "Start", *statuses, outcome, 1.0, 2.0, steps=steps)


def answer(operation: Callable[[Store], Any], store: Store) -> Any:  # noqa: ANN401 - any operation's answer
    """What an operation returns, or how it was refused."""
    try:
        return operation(store)
    except HoldfastError as error:
        return type(error), error.problems


class Stores(RuleBasedStateMachine):
    """Does everything to both and compares every answer."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._server = open_store(url)
        self._memory = MemoryStore()
        self._now = 0.0

    def teardown(self) -> None:
        self._server.close()

    def both(self, operation: Callable[[Store], Any]) -> None:
        assert answer(operation, self._server) == answer(operation, self._memory)

    @rule(
        jobs=st.lists(JOBS, max_size=3),
        labels=LABELS,
        key=st.none() | st.sampled_from("kl"),
        print_=st.sampled_from("fg"),
    )
    def submit(self, jobs: list[Job], labels: dict[str, str], key: str | None, print_: str) -> None:
        submission = Submission(jobs, {job.id: labels for job in jobs[:1]}, key, print_)
        self.both(lambda store: store.submit(submission))

    @rule(job_set=JOB_SETS, jobs=st.lists(JOBS, max_size=2), key=st.none() | st.sampled_from("kl"))
    def submit_set(self, job_set: JobSet, jobs: list[Job], key: str | None) -> None:
        submission = Submission(jobs, idempotency_key=key, fingerprint="f", owner=job_set)
        self.both(lambda store: store.submit(submission))

    @rule(
        job_sets=st.lists(JOB_SETS, max_size=1),
        logged=st.lists(LOGGED, max_size=2),
        kube_jobs=st.lists(POD_JOBS, max_size=2),
        gone=st.none() | SETS,
    )
    def commit_sets(
        self, job_sets: list[JobSet], logged: list[SetLogEntry], kube_jobs: list[KubeJobRecord], gone: str | None
    ) -> None:
        changes = Changes(
            workloads={each.id: each for each in (*job_sets, *kube_jobs)},
            set_log=logged,
            forgotten={gone: None} if gone else {},
        )
        self.both(lambda store: store.commit(changes))

    @rule(reference=SETS | st.just("x"), after=st.sampled_from(["", "s1", "x"]), limit=st.none() | st.integers(0, 2))
    def find_sets(self, reference: str, after: str, limit: int | None) -> None:
        self.both(lambda store: store.workload(JobSet, reference))
        self.both(lambda store: store.workloads(JobSet, after=after, limit=limit))
        self.both(lambda store: store.workloads_by_id(JobSet, [reference]))
        self.both(lambda store: store.children_of(reference))
        self.both(lambda store: [evolve(each, seq=0) for each in store.set_log(reference, limit=limit)])

    @rule(kind=st.sampled_from(RequestKind), job_id=IDS)
    def append(self, kind: RequestKind, job_id: str) -> None:
        self.both(lambda store: store.append(Request(kind, (job_id,), 1.0, "ann")))

    @rule(
        states=st.dictionaries(IDS, st.sampled_from(JobState), max_size=3),
        attempts=st.lists(ATTEMPTS, max_size=2),
        some_runs=st.lists(runs(), max_size=2),
        history=st.lists(history_rows(), max_size=2),
        handled=st.lists(st.integers(1, 5), max_size=2),
    )
    def commit(
        self,
        states: dict[str, JobState],
        attempts: list[Attempt],
        some_runs: list[Run],
        history: list[HistoryRow],
        handled: list[int],
    ) -> None:
        known = {job.id: job for job in self._memory.jobs_by_id(list(states))}
        jobs = {job_id: evolve(known[job_id], state=states[job_id]) for job_id in states if job_id in known}
        node = Node("n", "e", Resources(len(states)))
        changes = Changes(
            jobs,
            {each.key: each for each in attempts},
            {each.uid: each for each in some_runs},
            {each.key: each for each in history},
            nodes={("e", "n"): node},
            handled=handled,
        )
        self.both(lambda store: store.commit(changes))

    @rule(job_ids=st.lists(IDS, max_size=2))
    def delete_finished(self, job_ids: list[str]) -> None:
        self.both(lambda store: store.delete_finished(job_ids))

    @rule(before=st.sampled_from([1.5, 2.5]), limit=st.integers(1, 2))
    def delete_keys(self, before: float, limit: int) -> None:
        self.both(lambda store: store.delete_keys(before=before, limit=limit))

    @rule(after=st.integers(0, 4), limit=st.integers(1, 3))
    def list_finished(self, after: int, limit: int) -> None:
        self.both(lambda store: store.finished_jobs(after=after, limit=limit))

    @rule(owner=st.sampled_from(["one", "two"]), ttl=st.sampled_from([0.0, 1000.0]))
    def lead(self, owner: str, ttl: float) -> None:
        self._now += 1.0  # a database server goes by its own clock, on which time passes between two calls, too
        self.both(lambda store: store.lead(owner, ttl, self._now))

    @rule(reference=REFERENCES)
    def find(self, reference: str) -> None:
        self.both(lambda store: store.job(reference))

    @rule(where=FILTERS, after=st.integers(0, 4), limit=st.none() | st.integers(0, 3))
    def list_jobs(self, where: JobFilter, after: int, limit: int | None) -> None:
        self.both(lambda store: store.jobs(where, after=after, limit=limit))

    @rule(name=POLICIES, limit=st.integers(0, 2), create=CREATE)
    def put_policy(self, name: str, limit: int, create: bool | None) -> None:  # noqa: FBT001 - hypothesis passes by name
        policy = RetryPolicy(name, (Rule(Action.RETRY, "any"),), limit)
        self.both(lambda store: store.put_entry(policy, create=create))

    @rule(name=POLICIES)
    def delete_policy(self, name: str) -> None:
        self.both(lambda store: store.delete_entry(POLICY, name))

    @rule(name=POLICIES, revision=st.integers(0, 4))
    def policy_revision(self, name: str, revision: int) -> None:
        self.both(lambda store: store.policy_revision(name, revision))

    @rule(name=QUEUES, policies=st.lists(POLICIES, unique=True).map(tuple), create=CREATE)
    def put_queue(self, name: str, policies: tuple[str, ...], create: bool | None) -> None:  # noqa: FBT001 - as above
        self.both(lambda store: store.put_entry(Queue(name, retry_policies=policies), create=create))

    @rule(name=QUEUES)
    def delete_queue(self, name: str) -> None:
        self.both(lambda store: store.delete_entry(QUEUE, name))

    @rule(name=st.sampled_from(["oom", "net"]), precedence=st.integers(0, 1), create=CREATE)
    def put_category(self, name: str, precedence: int, create: bool | None) -> None:  # noqa: FBT001 - as above
        category = FailureCategory(name, (CategoryRule(conditions=frozenset({"OOMKilled"})),), precedence)
        self.both(lambda store: store.put_entry(category, create=create))

    @rule(name=st.sampled_from(["oom", "net"]))
    def delete_category(self, name: str) -> None:
        self.both(lambda store: store.delete_entry(CATEGORY, name))

    @rule(limit=st.none() | st.integers(0, 2), policy=st.none() | POLICIES)
    def put_settings(self, limit: int | None, policy: str | None) -> None:
        self.both(lambda store: store.put_settings(RetrySettings(limit), policy))

    @invariant()
    def they_hold_the_same(self) -> None:
        self.both(lambda store: store.load())
        self.both(lambda store: store.requests(limit=100))
        self.both(lambda store: store.catalogue())
        self.both(lambda store: store.count_by_state())
        self.both(lambda store: list(store.running()))
        self.both(lambda store: store.nodes())
        for job in self._memory.jobs(JobFilter()):
            self.both(partial(all_stored, job_id=job.id))


def all_stored(store: Store, job_id: str) -> list[object]:
    """Everything stored about one job."""
    return [
        store.attempts(job_id),
        store.runs(job_id),
        store.history(job_id),
        store.workloads_by_id(KubeJobRecord, [job_id]),
    ]


def test_postgresql_means_the_same(postgres_server: PostgresServer) -> None:
    run_state_machine_as_test(
        lambda: Stores(postgres_server.migrated()),  # type: ignore[arg-type] # any maker of machines will do
        settings=settings(max_examples=8, stateful_step_count=15, deadline=None),
    )
