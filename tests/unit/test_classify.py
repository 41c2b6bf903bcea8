"""From facts to conditions, cause and the failure that is charged."""

from __future__ import annotations

import pytest

from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.classify import CompiledCategories, classify, initiating_failure
from holdfast.domain.failure import ContainerResult, EndedBy, RunOutcome, failure_in_words
from holdfast.domain.record import evolve

BAD, GOOD = ContainerResult(1), ContainerResult(0)
SIDECAR_OOM = ContainerResult(137, "side", reason="OOMKilled")


def facts(*containers: ContainerResult, conditions: tuple[str, ...] = (), **more: object) -> RunOutcome:
    return RunOutcome(containers, frozenset(conditions), **more)  # type: ignore[arg-type]


TABLE: list[tuple[str, RunOutcome, str, set[str]]] = [
    ("non-zero exit", facts(BAD), "kernel_nonzero_exit", {"AppError"}),
    ("137 alone is no OOM", facts(ContainerResult(137)), "kernel_nonzero_exit", {"AppError"}),
    ("own signal", facts(ContainerResult(139, signal=11)), "kernel_nonzero_exit", {"AppError"}),
    ("OOM by reason", facts(SIDECAR_OOM), "oom_killed", {"OOMKilled"}),
    ("OOM by the engine", facts(ContainerResult(137), conditions=("OOMKilled",)), "oom_killed", {"OOMKilled"}),
    ("OOM by the watcher", facts(ContainerResult(137), ended_by=EndedBy.MEMORY), "oom_killed", {"OOMKilled"}),
    ("OOM of one, error of another", facts(SIDECAR_OOM, BAD), "oom_killed", {"OOMKilled", "AppError"}),
    (
        "OOM of one that ended well",
        facts(ContainerResult(0, reason="OOMKilled"), BAD),
        "kernel_nonzero_exit",
        {"AppError"},
    ),
    (
        "image",
        facts(conditions=("ImagePullFailed",), started=False),
        "image_pull_failure",
        {"ImagePullFailed"},
    ),
    ("deadline", facts(ContainerResult(143), ended_by=EndedBy.DEADLINE), "execution_timeout", {"DeadlineExceeded"}),
    ("unschedulable", facts(conditions=("Unschedulable",), started=False), "scheduler_timeout", {"Unschedulable"}),
    (
        "node lost",
        facts(conditions=("NodeLost",), ended_by=EndedBy.LOST),
        "agent_transient",
        {"NodeLost", "EndUnknown"},
    ),
    ("executor lost", facts(ended_by=EndedBy.LOST), "agent_transient", {"ExecutorLost", "EndUnknown"}),
    (
        "lost with words and no code",
        facts(ContainerResult(None, message="step 3"), ended_by=EndedBy.LOST),
        "agent_transient",
        {"ExecutorLost", "EndUnknown"},
    ),
    (
        "lost, and one of two seen",
        facts(ContainerResult(0), ContainerResult(None), conditions=("NodeLost",)),
        "agent_transient",
        {"NodeLost", "EndUnknown"},
    ),
    (
        "ended for want of a server",
        facts(ContainerResult(137), ended_by=EndedBy.LOST),
        "agent_transient",
        {"ExecutorLost"},
    ),
    ("lost before it started", facts(ended_by=EndedBy.LOST, started=False), "agent_transient", {"ExecutorLost"}),
    ("preempted", facts(ContainerResult(143), ended_by=EndedBy.PREEMPTION), "agent_transient", {"Preempted"}),
    ("evicted", facts(ContainerResult(137), conditions=("Evicted",)), "agent_transient", {"Evicted"}),
    ("launch failed", facts(started=False, message="no such file"), "agent_transient", {"LaunchFailed"}),
    (
        "no program",
        facts(ContainerResult(None, reason="CommandNotFound"), started=False),
        "validation_error",
        {"LaunchFailed"},
    ),
    (
        "no directory",
        facts(ContainerResult(None, reason="WorkingDirNotFound"), started=False),
        "agent_transient",
        {"LaunchFailed"},
    ),
    ("user", facts(ContainerResult(143), ended_by=EndedBy.USER), "user_cancelled", set()),
    ("user wins", facts(SIDECAR_OOM, ended_by=EndedBy.USER), "user_cancelled", {"OOMKilled"}),
    ("cascade", facts(ContainerResult(143), ended_by=EndedBy.CASCADE), "unknown", set()),
    ("nothing known", facts(), "unknown", set()),
    ("the engine's own word", facts(conditions=("AppError",)), "kernel_nonzero_exit", {"AppError"}),
]


@pytest.mark.parametrize(("outcome", "cause", "conditions"), [pytest.param(*row[1:], id=row[0]) for row in TABLE])
def test_facts_give_one_cause_and_all_conditions(outcome: RunOutcome, cause: str, conditions: set[str]) -> None:
    failure = classify(outcome)
    assert (str(failure.cause), set(failure.conditions)) == (cause, conditions)


def test_the_facts_are_kept() -> None:
    outcome = facts(BAD, started_at=10.0, ended_at=15.0, node="n1", executor="e1", message="m")
    failure = classify(outcome, rank=3)
    assert (failure.rank, failure.node, failure.executor, failure.message) == (3, "n1", "e1", "m")
    assert (failure.ran_s, failure.failed_at, failure.containers) == (5.0, 15.0, (BAD,))


def test_a_category_comes_with_its_hint() -> None:
    rule = CategoryRule(conditions=frozenset({"OOMKilled"}), subcategory="kernel", hint="ask for more memory")
    categories = CompiledCategories.compile([FailureCategory("oom", (rule,))])
    failure = classify(facts(SIDECAR_OOM), categories=categories)
    assert (failure.category, failure.subcategory, failure.hint) == ("oom", "kernel", "ask for more memory")


CASCADE = facts(ContainerResult(143), ended_by=EndedBy.CASCADE, ended_at=1.0)


@pytest.mark.parametrize(
    ("outcomes", "index"),
    [
        ([], None),
        ([(0, facts(GOOD))], None),
        ([(0, CASCADE)], None),
        ([(0, facts(BAD, ended_at=5.0)), (1, facts(BAD, ended_at=4.0))], 1),
        ([(2, facts(BAD, ended_at=4.0)), (1, facts(BAD, ended_at=4.0))], 1),
        ([(0, CASCADE), (1, facts(GOOD, ended_at=2.0)), (2, facts(BAD, ended_at=3.0))], 2),
        ([(0, facts(BAD, ended_by=EndedBy.SUSPENSION, ended_at=1.0)), (1, facts(BAD, ended_at=3.0))], 1),
        ([(0, facts(BAD, ended_by=EndedBy.DRAIN, ended_at=1.0)), (1, facts(BAD, ended_at=3.0))], 1),
    ],
)
def test_the_earliest_failure_is_charged_and_ties_go_by_rank(
    outcomes: list[tuple[int, RunOutcome]], index: int | None
) -> None:
    assert initiating_failure(outcomes) == index


NOBODY_KNOWS = facts(ended_by=EndedBy.LOST, ended_at=9.0)


@pytest.mark.parametrize(
    ("first", "index"),
    [
        (facts(ended_by=EndedBy.LOST, started=False, ended_at=1.0), 2),
        (facts(BAD, ended_by=EndedBy.LOST, ended_at=1.0), 2),
        (facts(BAD, conditions=("NodeLost",), ended_at=1.0), 2),
        (facts(BAD, ended_by=EndedBy.PREEMPTION, ended_at=1.0), 2),
        (facts(conditions=("ImagePullFailed",), started=False, ended_at=1.0), 2),
        (facts(BAD, ended_at=1.0), 0),
        (facts(BAD, ended_by=EndedBy.DEADLINE, ended_at=1.0), 0),
        (facts(ended_by=EndedBy.USER, started=False, ended_at=1.0), 0),
    ],
)
def test_an_end_that_nobody_knows_is_asked_about_before_what_is_no_programs_failure(
    first: RunOutcome, index: int
) -> None:
    later = evolve(NOBODY_KNOWS, ended_at=10.0)
    assert initiating_failure([(0, first), (1, later), (2, NOBODY_KNOWS), (3, facts(GOOD))]) == index
    assert initiating_failure([(0, first), (1, facts(GOOD))]) == 0


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (facts(ContainerResult(3)), "exit code 3"),
        (facts(ContainerResult(139, signal=11)), "killed by SIGSEGV"),
        (facts(ContainerResult(191, signal=63)), "killed by signal 63"),
        (facts(SIDECAR_OOM, message="x"), "OOMKilled"),
        (facts(started=False, message="no such file"), "LaunchFailed: no such file"),
        (facts(ended_by=EndedBy.PREEMPTION), "Preempted"),
        (facts(message="gone"), "gone"),
        (facts(), "unknown"),
    ],
)
def test_a_failure_is_named_in_a_few_words(outcome: RunOutcome, words: str) -> None:
    assert failure_in_words(classify(outcome)) == words
