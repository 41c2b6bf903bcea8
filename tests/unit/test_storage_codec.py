"""Records become rows and come back the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import LargeBinary, Text, create_mock_engine, insert

from holdfast.compiled import records
from holdfast.compiled.records import storable
from holdfast.compiled.workloads import dump_state
from holdfast.domain.containers import Capability, EngineInfo
from holdfast.domain.devices import Device
from holdfast.domain.failure import Cause, ContainerResult, EndedBy, Failure, PodEvent, RunOutcome
from holdfast.domain.job import Attempt, ChildOf, Job, JobState, Node, Resources, Run
from holdfast.domain.lifecycle import (
    AttemptStatus,
    Ending,
    EntityKind,
    HistoryRow,
    Interruption,
    Outcome,
    RunStatus,
    SubStep,
    attempt_id,
)
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, Considered, Decision, LimitUse, SetAction
from holdfast.domain.record import evolve
from holdfast.domain.shortage import Short, Shortage
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.jobset.state import (
    GroupStatus,
    JobSet,
    JobSetState,
    SetCondition,
    SetDecision,
    SetEvent,
    SetLogEntry,
    Streak,
    Terminal,
)
from holdfast.domain.workloads.kubejob.model import BackoffRecord, JobCondition, KubeJobState
from holdfast.domain.workloads.kubejob.records import KubeJobRecord, PodRecord
from holdfast.errors import Internal
from holdfast.storage.sql import codec, logs, submission, tables
from holdfast.storage.sql.batch import Batch, Batches, Lookup, StatementRows

if TYPE_CHECKING:
    from sqlalchemy import Dialect, Table

TEXTS = st.text(max_size=20)
TIMES = st.floats(0, 4e9)
AMOUNTS = st.builds(Resources, *[st.integers(0, 1 << 60)] * 2, st.integers(0, 1000))
CONTAINERS = st.lists(st.builds(ContainerResult, st.none() | st.integers(0, 255), message=TEXTS), max_size=2).map(tuple)
CONDITIONS = st.frozensets(st.sampled_from(["OOMKilled", "Evicted", "AppError"]))
OUTCOMES = st.builds(
    RunOutcome,
    containers=CONTAINERS,
    conditions=CONDITIONS,
    ended_by=st.sampled_from(EndedBy),
    started=st.booleans(),
    started_at=st.none() | TIMES,
    ended_at=TIMES,
    node=st.none() | TEXTS,
    message=TEXTS,
    log_tail=st.lists(TEXTS, max_size=2).map(tuple),
    events=st.lists(st.builds(PodEvent, TEXTS, TEXTS), max_size=2).map(tuple),
    peak_memory=st.none() | st.integers(0, 1 << 60),
)
FAILURES = st.builds(
    Failure,
    cause=st.sampled_from(Cause),
    conditions=CONDITIONS,
    containers=CONTAINERS,
    hint=TEXTS,
    rank=st.integers(0, 9),
    ran_s=st.none() | TIMES,
    ended_by=st.sampled_from(EndedBy),
)
DECISIONS = st.builds(
    Decision,
    action=st.sampled_from(Action),
    code=st.sampled_from(DecisionCode),
    reason=TEXTS,
    policy=st.none() | TEXTS,
    rule_index=st.none() | st.integers(0, 9),
    delay_s=TIMES,
    limits=st.lists(st.builds(LimitUse, TEXTS, st.integers(0, 9), st.none() | st.integers(0, 9))).map(tuple),
    considered=st.lists(st.builds(Considered, TEXTS, TEXTS, st.booleans(), TEXTS), max_size=2).map(tuple),
)


COUNTS = st.integers(0, 9)
BY_NAME = st.dictionaries(TEXTS, COUNTS, max_size=2)
BY_INDEX = st.dictionaries(TEXTS, st.dictionaries(COUNTS, COUNTS, max_size=2), max_size=2)
EVENTS = st.builds(SetEvent, TEXTS, TEXTS, TEXTS)
SET_DECISIONS = st.builds(
    SetDecision,
    job=TEXTS,
    attempt=st.tuples(COUNTS, COUNTS),
    action=st.none() | st.sampled_from(SetAction),
    granted=st.booleans(),
    reason=TEXTS,
    message=TEXTS,
    rule=st.none() | TEXTS,
    rule_index=st.none() | COUNTS,
    limits=st.lists(st.builds(LimitUse, TEXTS, COUNTS, st.none() | COUNTS), max_size=2).map(tuple),
    delay_s=TIMES,
    considered=st.lists(st.builds(Considered, TEXTS, TEXTS, st.booleans(), TEXTS), max_size=2).map(tuple),
)
SET_STATES = st.builds(
    JobSetState,
    restarts=COUNTS,
    job_restarts=BY_INDEX,
    job_restarts_counted=BY_INDEX,
    group_restarts=BY_NAME,
    blamed=BY_NAME,
    counted_at=st.lists(TIMES, max_size=2).map(tuple),
    left_failed=st.dictionaries(TEXTS, st.tuples(COUNTS, COUNTS), max_size=2),
    terminal=st.sampled_from(Terminal),
    conditions=st.lists(st.builds(SetCondition, TEXTS, st.booleans(), TEXTS, TEXTS, TIMES), max_size=2).map(tuple),
    groups=st.lists(st.builds(GroupStatus, TEXTS, *[COUNTS] * 5), max_size=2).map(tuple),
    started_at=st.none() | TIMES,
    not_before=st.dictionaries(TEXTS, TIMES, max_size=2),
    streaks=st.dictionaries(TEXTS, st.builds(Streak, COUNTS, TIMES), max_size=2),
    in_place_current=st.none() | COUNTS,
    met=st.lists(COUNTS, max_size=2).map(tuple),
    unmet=TEXTS,
)
POD_STATES = st.builds(
    KubeJobState,
    started_at=st.none() | TIMES,
    active=COUNTS,
    counted=st.frozensets(TEXTS, max_size=3),
    stopped_at_end=st.frozensets(TEXTS, max_size=3),
    completed_indexes=st.frozensets(st.integers(0, 99_999), max_size=5),
    failed_indexes=st.frozensets(COUNTS, max_size=5),
    index_failures=st.dictionaries(COUNTS, st.tuples(COUNTS, COUNTS, TIMES), max_size=2),
    conditions=st.lists(st.builds(JobCondition, TEXTS, st.booleans(), TEXTS, TEXTS, TIMES), max_size=2).map(tuple),
    backoff=st.builds(BackoffRecord, COUNTS, TIMES),
    finished_at=st.none() | TIMES,
)
PODS = st.builds(
    PodRecord,
    name=TEXTS,
    rank=COUNTS,
    index_failures=COUNTS,
    restarts=COUNTS,
    run=TEXTS,
    due=st.none() | TIMES,
    counters=BY_NAME,
    in_place=COUNTS,
    avoid_node=st.none() | TEXTS,
    avoid_devices=st.lists(TEXTS, max_size=2).map(tuple),
    avoid_nodes=st.lists(TEXTS, max_size=2).map(tuple),
    tried=st.lists(TEXTS, max_size=2).map(tuple),
)


@given(OUTCOMES)
def test_outcomes_come_back_the_same(outcome: RunOutcome) -> None:
    assert records.load_record(RunOutcome, records.dump_record(outcome)) == outcome


@given(FAILURES)
def test_failures_come_back_the_same(failure: Failure) -> None:
    assert records.load_record(Failure, records.dump_record(failure)) == failure


@given(DECISIONS)
def test_decisions_come_back_the_same(decision: Decision) -> None:
    assert records.load_record(Decision, records.dump_record(decision)) == decision


@given(SET_DECISIONS | EVENTS)
def test_what_is_logged_of_a_set_comes_back_the_same(what: SetDecision | SetEvent) -> None:
    entry = SetLogEntry(set_id="s", at=1.0, what=what)
    assert logs.read_set_log((0, *logs.set_log_row(entry))) == entry


@given(SET_STATES)
def test_the_state_of_a_set_comes_back_the_same(state: JobSetState) -> None:
    job_set = evolve(JOB_SET, state=state)
    assert codec.read_workload(codec.workload_row(job_set)) == job_set


@given(POD_STATES, st.lists(PODS, max_size=2).map(tuple))
def test_what_is_known_of_pods_comes_back_the_same(state: KubeJobState, pods: tuple[PodRecord, ...]) -> None:
    job = evolve(POD_JOB, state=state, pods=pods)
    assert codec.read_workload(codec.workload_row(job)) == job


def test_a_set_and_pods_nothing_is_known_of_take_little_room() -> None:
    assert {dump_state(JobSet("s", state=JobSetState())), dump_state(KubeJobRecord("j"))} == {'{"version":1}'}


def test_what_a_newer_version_logged_of_a_set_is_named_and_refused() -> None:
    with pytest.raises(Internal, match="'dream'"):
        logs.read_set_log((1, "s", 1.0, "dream", "{}"))


def test_what_has_its_default_is_not_stored() -> None:
    text = records.dump_record(RunOutcome((ContainerResult(0),), ended_at=2.0))
    assert text == '{"containers":0,"ended_at":2.0}'


def test_facts_are_stored_as_ascii_whatever_a_program_printed() -> None:
    text = records.dump_record(RunOutcome(log_tail=("\udcff \0 ☃",)))
    assert text is not None
    assert text.isascii()
    assert "\0" not in text


def test_what_is_not_there_stays_not_there() -> None:
    assert [records.load_record(RunOutcome, None), records.load_record(Failure, None)] == [None] * 2


ASKED = Resources(1, 2, 3, 4, (("scratch", 5),))
JOB = Job(
    "j", "n", "q", 7, 1.0, "{}", ASKED, 4, 5, JobState.BACKOFF, "r", 6, 7.0, 8.0, 9.0, 10.0, 11.0,
    {"p/r": 1}, 12, "node", ("g@n",), ("n",), ("n", "m"), cancel_requested=True, child=ChildOf("s", "g", 13),
    ready_at=14.0, met=(0, 2),
    submitted_by="ann", submitter_uid=1000, group="g/1", kind=KUBEJOB, parent="k",
)  # fmt: skip
ATTEMPT = Attempt(
    "j", 1, AttemptStatus.ERROR, 2.0, 3, 4, 5.0, 6.0, 7.0, ASKED, Ending.FAILED,
    Failure(Cause.UNKNOWN, frozenset()), Decision(Action.FAIL, DecisionCode.FAIL_RULE, "r"), 8.0, "m",
)  # fmt: skip
RUN = Run(
    "j-1-2-3", "j", 1, 2, RunStatus.ERROR, 4.0, "e", "n", ASKED, 5.0, 6.0, RunOutcome(), "half",
    Failure(Cause.UNKNOWN, frozenset()), Decision(Action.FAIL, DecisionCode.FAIL_RULE, "r"), 7,
    ("GPU-1", "GPU-2"), Interruption.HOLD, "d1", {"http": 8080},
)  # fmt: skip
DEVICE = Device("GPU-1", 1, "NVIDIA A100", 2, "nvidia", "Xid 79", "pid 7")
HISTORY = HistoryRow(
    EntityKind.ATTEMPT, attempt_id("j", 1), 2, "p", AttemptStatus.PENDING, AttemptStatus.ERROR, Outcome.GIVE_UP,
    3.0, 4.0, "e", "m", 5, (SubStep("rank 1", Outcome.FAILURE, "e", "m"),),
)  # fmt: skip
SHORT = Short(Shortage.INODES, 1.5, "no room", 2.5, 3.5, 2, trying=True)
NODE = Node("n", "e", ASKED, {"zone": "a"}, 4.0, EngineInfo("x", frozenset({Capability.IMAGES})), (DEVICE,), SHORT)
SET_STATE = JobSetState(
    restarts=3, restarts_counted=2, job_restarts={"g": {11: 2}}, job_restarts_counted={"g": {11: 1}},
    group_restarts={"g": 1}, group_restarts_counted={"g": 1}, rule_restarts={"r": 2}, blamed={"g": 2},
    counted_at=(1.5, 2.5), forgiven=1, left_failed={"j": (1, 2)}, terminal=Terminal.FAILED,
    conditions=(SetCondition("Failed", status=True, reason="r", message="m", since=3.5),),
    groups=(GroupStatus("g", 1, 2, 3, 4, 5),), started_at=0.5, ended_at=4.5, healthy_since=1.0, not_before={"": 5.5},
    streaks={"": Streak(21, 5.5)}, in_place_previous=1, in_place_current=2, met=(1,), unmet="why",
)  # fmt: skip
JOB_SET = JobSet(
    id="s", name="n", created_at=1.0, manifest="{}", lenient=True, generation=2, updated_at=3.0, deleting=True,
    state=SET_STATE, version=4, spec="{}", owner="o", expires_at=9.0, submitted_by="ann", submitter_uid=1000,
    group="g/1",
    queue="gpu",
)  # fmt: skip
LOGGED = SetLogEntry(set_id="s", at=1.0, what=SetEvent("Normal", "r", "m"), seq=2)
POD_STATE = KubeJobState(
    started_at=1.5, active=1, ready=2, terminating=3, succeeded=4, failed=5, ignored=6, counted=frozenset({"a", "b"}),
    completed_indexes=frozenset({0, 1, 2, 9}), failed_indexes=frozenset({4}), index_failures={4: (1, 2, 3.5)},
    conditions=(JobCondition("Failed", status=True, reason="r", message="m", since=2.5),),
    backoff=BackoffRecord(1, 2.5), finished_at=3.5, stopped_at_end=frozenset({"a"}),
)  # fmt: skip
POD = PodRecord(
    name="a", rank=1, index_failures=2, index_ignored=3, restarts=4, run="b", due=9.5, counters={"p/r": 1}, in_place=5,
    avoid_node="n", avoid_devices=("g@n",), avoid_nodes=("n",), tried=("n", "m"), waiting=True,
    place_given_up=True, memory=6, taken="low", held="why",
)  # fmt: skip
POD_JOB = KubeJobRecord(
    id="j", owner="s", name="n", generation=2, spec="{}", manifest="m", deleting=True, expires_at=12.5, version=2,
    created_at=1.0, updated_at=2.0, submitted_by="ann", submitter_uid=1000, group="g/1", queue="gpu",
    restart=1, job_restart=2, present=False, suspended=True, deleting_since=1.5,
    domain="rack", parallelism=3, completions=4, failed_in_place="why", state=POD_STATE, pods=(POD,),
)  # fmt: skip
EXAMPLES = [JOB, ATTEMPT, RUN, HISTORY, NODE, SET_STATE, JOB_SET, LOGGED, POD_STATE, POD, POD_JOB]


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: type(record).__name__)
def test_the_examples_set_every_field(record: Any) -> None:  # noqa: ANN401 - any record
    names = record.__struct_fields__
    defaults = dict(zip(reversed(names), reversed(record.__struct_defaults__), strict=False))
    unset = [name for name in names if getattr(record, name) in (None, {}, (), defaults.get(name))]
    assert unset == []


@pytest.mark.parametrize(
    ("record", "row", "read", "table"),
    [
        (ATTEMPT, codec.attempt_row, codec.Reader.attempt, tables.attempts),
        (RUN, codec.run_row, codec.Reader.run, tables.runs),
        (HISTORY, codec.history_row, codec.Reader.history, tables.history),
        (NODE, codec.node_row, codec.Reader.node, tables.nodes),
    ],
)
def test_a_row_has_a_value_for_every_column_and_reads_back(record: Any, row: Any, read: Any, table: Table) -> None:  # noqa: ANN401 - any codec
    written = row(record)
    assert len(written) == len(table.columns)
    assert read(codec.Reader(), written) == record


@pytest.mark.parametrize(
    ("record", "row", "read", "table"),
    [
        (JOB_SET, codec.workload_row, codec.read_workload, tables.workloads),
        (LOGGED, lambda entry: (entry.seq, *logs.set_log_row(entry)), logs.read_set_log, tables.set_log),
        (POD_JOB, codec.workload_row, codec.read_workload, tables.workloads),
    ],
)
def test_a_row_of_workloads_has_a_value_for_every_column_and_reads_back(
    record: Any,  # noqa: ANN401 - any record
    row: Any,  # noqa: ANN401 - any codec
    read: Any,  # noqa: ANN401 - any codec
    table: Table,
) -> None:
    written = row(record)
    assert len(written) == len(table.columns)
    assert read(written) == record


def test_a_job_row_has_a_value_for_every_column_and_reads_back() -> None:
    row = (JOB.seq, *codec.new_job_row(JOB, submission.digest_of(JOB.spec)))
    assert len(row) == len(tables.jobs.columns)
    assert codec.Reader().job((*row, JOB.spec)) == JOB


def test_a_word_of_another_version_is_named_and_refused() -> None:
    row = (*codec.attempt_row(ATTEMPT)[:2], "DREAMING", *codec.attempt_row(ATTEMPT)[3:])
    with pytest.raises(Internal, match="'DREAMING'"):
        codec.Reader().attempt(row)


def test_jobs_without_a_retry_share_one_empty_dict() -> None:
    read = codec.Reader()
    rows = [
        (each.seq, *codec.new_job_row(each, b""), "{}") for each in (evolve(JOB, counters={}), evolve(JOB, counters={}))
    ]
    one, other = map(read.job, rows)
    assert one.counters is other.counters
    assert one.request is other.request


def test_equal_specifications_have_one_digest() -> None:
    assert submission.digest_of("{}") == submission.digest_of("{}") != submission.digest_of("{} ")


@pytest.mark.parametrize(
    ("text", "stored"), [("plain", "plain"), ("snow ☃", "snow ☃"), ("nul \0", "nul ?"), ("bad \udcff ☃", "bad ? ☃")]
)
def test_text_no_database_takes_is_mended(text: str, stored: str) -> None:
    assert storable(text) == stored


SQLITE: Dialect = create_mock_engine("sqlite://", print, paramstyle="qmark").dialect
POSTGRES: Dialect = create_mock_engine("postgresql+psycopg://", print, paramstyle="format").dialect


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES], ids=["sqlite", "postgresql"])
def test_every_hot_statement_compiles_for_every_dialect(dialect: Dialect) -> None:
    compiled = vars(Batches(dialect)).values()
    assert {type(batch) for batch in compiled} == {Batch, Lookup}
    assert compiled


def test_a_statement_that_takes_its_values_in_another_order_is_a_defect() -> None:
    given = StatementRows({"body": Text(), "digest": LargeBinary()}, SQLITE)
    with pytest.raises(Internal, match="rows come as"):
        Batch(given.into(insert(tables.specs)), SQLITE, given)


def test_counters_are_stored_as_json() -> None:
    row = dict(zip((*tables.JOB_CHANGING, "id"), codec.changed_job_row(JOB), strict=True))
    assert json.loads(row["counters"]) == {"p/r": 1}
