"""Records become wire models with the names and formats the outside relies on."""

from __future__ import annotations

import pytest

from holdfast.compiled.codec import dump_spec
from holdfast.domain.failure import Cause, ContainerResult, EndedBy, Failure, RunOutcome
from holdfast.domain.job import Attempt, ChildOf, Job, JobState, Node, Resources, Run
from holdfast.domain.lifecycle import AttemptStatus, Ending, RunStatus
from holdfast.domain.placement.cordon import Cordon
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, Considered, Decision, LimitUse
from holdfast.domain.workloads.dependencies import Dependency, DependencyKind
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import InvalidPolicy, Problem
from holdfast.service.access.hiding import masked
from holdfast.wire.base import timestamp
from holdfast.wire.jobs import JobPage, JobSummary, JobView
from holdfast.wire.problems import details_of, read_problem
from holdfast.wire.render_catalogue import node_views
from holdfast.wire.render_decisions import decision_view
from holdfast.wire.render_jobs import (
    attempt_state,
    attempt_view,
    attempt_views,
    job_summary,
    job_view,
    jobs_written,
    run_state,
)
from tests.reading import seconds_of

RETRY = Decision(
    Action.RETRY,
    DecisionCode.RETRY,
    "retry 1 of 2",
    policy="infra",
    rule="oom",
    policy_revision=3,
    counter="infra/oom",
    delay_s=2.5,
    memory=3 << 30,
    limits=(LimitUse("infra/oom", 0, 2), LimitUse("globalMaxRetries", 0, None)),
    considered=(Considered("infra", "oom", matched=True, because="OOMKilled is in [OOMKilled]"),),
)


AWAITING = dump_spec(JobSpec("next", ("next",), after=(Dependency("prep", target=DependencyKind.JOB, id="p1"),)))


def _job(**fields: object) -> Job:
    base = Job("j1", "train", "default", 0, 1_700_000_000.25, "{}", request=Resources(500, 2 << 30, 0))
    return Job(**{**{name: getattr(base, name) for name in Job.__struct_fields__}, **fields})


def _outcome(code: int, *, signal: int | None = None, ended_by: EndedBy = EndedBy.ITSELF) -> RunOutcome:
    return RunOutcome(containers=(ContainerResult(code, signal=signal),), ended_by=ended_by, ended_at=5.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "1970-01-01T00:00:00.000Z"), (1_700_000_000.25, "2023-11-14T22:13:20.250Z")],
)
def test_times_are_utc_with_milliseconds_and_read_back(seconds: float, text: str) -> None:
    assert timestamp(seconds) == text
    assert seconds_of(text) == seconds


def test_a_summary_writes_amounts_as_manifests_do() -> None:
    view = job_summary(_job(state=JobState.BACKOFF, retry_at=1_700_000_003.0))
    assert (view.state, view.retry_at) == ("BackOff", "2023-11-14T22:13:23.000Z")
    assert view.resources.model_dump() == {"cpu": "0.5", "memory": "2Gi", "gpu": 0, "named": {}}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": 'a "quoted" ☃\n\\', "reason": "\x1b[31mno", "priority": -3, "gang": 4, "attempt": 2, "retries": 1},
        {"state": JobState.RUNNING, "started_at": 1_700_000_001.0005, "submitted_by": "ann", "group": "flows/7"},
        {"group": "train", "parent": "j0"},
        {"state": JobState.FAILED, "started_at": 1.0, "ended_at": 2.999999, "retry_at": 3.0},
        {"child": ChildOf("set-1", "workers", 3)},
        {"child": ChildOf("array-1", "", 0)},
        {"request": Resources(2_000, 0, 0, 250, (("licence/matlab", 1_500),))},
        {"spec": AWAITING},
        {"spec": AWAITING, "ready_at": 5.0},
    ],
    ids=str,
)
def test_a_written_page_is_what_its_model_would_write(fields: dict[str, object]) -> None:
    jobs = [_job(**fields), _job(**{**fields, "id": "j2"})]
    for cursor in (None, "next"):
        model = JobPage(items=[*map(job_summary, jobs)], next_cursor=cursor)
        assert jobs_written(jobs, cursor).decode() == model.model_dump_json(by_alias=True)


def test_a_page_tells_summaries_from_full_jobs_when_read_back() -> None:
    full = job_view(_job(), manifest={"name": "a", "command": ["true"], "labels": {"team": "nlp"}}, attempts=[])
    page = JobPage(items=[job_summary(_job()), full])
    read = JobPage.model_validate_json(page.model_dump_json())
    assert [type(item) for item in read.items] == [JobSummary, JobView]


def test_only_the_last_dispatch_of_each_rank_is_shown() -> None:
    runs = [Run(f"j1-1-{rank}-{dispatch}", "j1", 1, rank) for dispatch in (1, 2) for rank in (0, 1)]
    (view,) = attempt_views([Attempt("j1", 1, dispatch=2)], runs)
    assert [run.uid for run in view.runs] == ["j1-1-0-2", "j1-1-1-2"]


def test_a_failed_attempt_shows_the_judged_container_its_place_and_decision() -> None:
    failure = Failure(Cause.OOM_KILLED, frozenset({"OOMKilled"}), (ContainerResult(137, signal=9),), rank=1, node="n2")
    attempt = Attempt("j1", 1, AttemptStatus.ERROR, ending=Ending.FAILED, failure=failure, decision=RETRY, retry_at=9.5)
    runs = [Run("a", "j1", 1, 0, node="n1"), Run("b", "j1", 1, 1, node="n2", executor="local")]
    view = attempt_view(attempt, runs)
    assert (view.state, view.cause, view.conditions) == ("Failed", "oom_killed", ["OOMKilled"])
    assert (view.exit_code, view.signal, view.node, view.executor) == (137, 9, "n2", "local")
    assert view.decision is not None
    assert view.decision.retry_at == "1970-01-01T00:00:09.500Z"


def test_a_succeeded_attempt_shows_exit_code_zero() -> None:
    attempt = Attempt("j1", 1, AttemptStatus.TERMINATED, ending=Ending.SUCCEEDED)
    view = attempt_view(attempt, [Run("a", "j1", 1, 0, RunStatus.TERMINATED, outcome=_outcome(0))])
    assert (view.state, view.exit_code, view.signal) == ("Succeeded", 0, None)


def test_a_decision_that_ends_the_job_shows_no_due_time() -> None:
    fail = Decision(Action.FAIL, DecisionCode.FAIL_RULE, "exit code 2 is a bug")
    assert decision_view(fail, retry_at=12.0).retry_at is None


def test_a_decision_shows_limits_and_rules_considered() -> None:
    view = decision_view(RETRY, retry_at=None)
    assert [limit.model_dump() for limit in view.limits] == [
        {"name": "infra/oom", "used": 0, "limit": 2},
        {"name": "globalMaxRetries", "used": 0, "limit": None},
    ]
    assert (view.memory, view.considered[0].because) == ("3Gi", "OOMKilled is in [OOMKilled]")


@pytest.mark.parametrize(
    ("status", "ending", "cause", "shown"),
    [
        (AttemptStatus.PENDING, None, None, "Pending"),
        (AttemptStatus.CREATING, None, None, "Running"),
        (AttemptStatus.TERMINATING, None, Cause.UNKNOWN, "Running"),
        (AttemptStatus.TERMINATED, Ending.SUCCEEDED, None, "Succeeded"),
        (AttemptStatus.TERMINATED, Ending.CANCELLED, Cause.USER_CANCELLED, "Cancelled"),
        (AttemptStatus.ERROR, Ending.FAILED, Cause.OOM_KILLED, "Failed"),
        (AttemptStatus.CANCELLED, Ending.NEVER_STARTED, Cause.SCHEDULER_TIMEOUT, "Failed"),
        (AttemptStatus.CANCELLED, Ending.NEVER_STARTED, Cause.USER_CANCELLED, "Cancelled"),
        (AttemptStatus.CANCELLED, Ending.NEVER_STARTED, None, "Cancelled"),
    ],
)
def test_an_attempts_state_is_one_word(
    status: AttemptStatus, ending: Ending | None, cause: Cause | None, shown: str
) -> None:
    failure = Failure(cause, frozenset()) if cause else None
    assert attempt_state(Attempt("j1", 1, status, ending=ending, failure=failure)) == shown


@pytest.mark.parametrize(
    ("status", "outcome", "shown"),
    [
        (RunStatus.PENDING, None, "Pending"),
        (RunStatus.PULLING, None, "Running"),
        (RunStatus.TERMINATED, _outcome(0), "Succeeded"),
        (RunStatus.ERROR, _outcome(1), "Failed"),
        (RunStatus.TERMINATED, _outcome(143, signal=15, ended_by=EndedBy.CASCADE), "Cancelled"),
        (RunStatus.TERMINATED, _outcome(137, signal=9, ended_by=EndedBy.MEMORY), "Failed"),
        (RunStatus.TERMINATED, None, "Cancelled"),
        (RunStatus.ERROR, None, "Failed"),
        (RunStatus.CANCELLED, None, "Cancelled"),
    ],
)
def test_a_runs_state_is_one_word(status: RunStatus, outcome: RunOutcome | None, shown: str) -> None:
    assert run_state(Run("u", "j1", 1, 0, status, outcome=outcome)) == shown


def test_a_full_job_tells_its_metadata_from_its_spec() -> None:
    manifest = {"name": "a", "command": ["true"], "labels": {"team": "nlp"}, "annotations": {"note": "x"}}
    view = job_view(_job(), manifest=manifest, attempts=[])
    assert (view.labels, view.annotations, view.spec) == ({"team": "nlp"}, {"note": "x"}, {"command": ["true"]})


def test_nodes_show_what_their_runs_use() -> None:
    nodes = [Node("n2", "local", Resources(4000, 8 << 30, 0)), Node("n1", "local", Resources(4000, 8 << 30, 0))]
    runs = [Run(f"u{i}", "j1", 1, i, node="n1", executor="local", request=Resources(1000, 1 << 30)) for i in (0, 1)]
    first, second = node_views(nodes, runs, {"n1": Cordon("n1", 1.0, drain=True, reason="a new kernel")})
    assert (first.name, first.runs, first.used.cpu, first.used.memory) == ("n1", 2, "2", "2Gi")
    assert (first.state, first.reason, second.state) == ("Draining", "a new kernel", "Ready")
    assert (second.name, second.runs, second.used.cpu) == ("n2", 0, "0")


def test_details_of_carry_every_problem_and_read_back() -> None:
    problem = Problem("spec.rules[0].action", "'Again' is no action", allowed=("Retry", "Fail"), hint="did you", line=7)
    view = details_of(InvalidPolicy("policy 'x' is not valid", problems=[problem]))
    assert (view.type, view.title) == ("https://holdfast.dev/errors/invalid_policy", "The retry policy is not valid.")
    assert [read_problem(entry) for entry in view.errors] == [problem]


def test_of_somebody_elses_job_that_is_only_known_to_be_there_nobody_learns_what_launched_it() -> None:
    assert job_summary(_job(parent="j0")).parent == "j0"
    assert job_summary(masked(_job(parent="j0"))).parent is None
