"""What is kept of a failed run's output, and where it shows."""

from __future__ import annotations

import pytest

from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.classify import classify
from holdfast.domain.evidence import NO_PATTERNS, LogPatterns, with_evidence
from holdfast.domain.failure import ContainerResult, EndedBy, LogMatch, RunOutcome, failure_in_words
from holdfast.domain.job import JobState
from holdfast.domain.output import LONGEST_LINE, readable
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.explain import failure_lines
from holdfast.domain.policy.model import Action, RetryPolicy, Rule
from holdfast.engines.simulated.life import SimulatedRun
from tests.unit.conftest import Lab, exits, job_named

SAID = ("loading", "ValueError: no such key", "bye")


def ended(code: int = 1, *, message: str = "", signal: int | None = None, **facts: object) -> RunOutcome:
    container = ContainerResult(code, signal=signal, message=message, reason="Error" if code else "Completed")
    return RunOutcome((container,), log_tail=SAID, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (ended(), "exit code 1: ValueError: no such key"),
        (ended(message="data: Error: gone\nmore\n"), "exit code 1: data: Error: gone"),
        (ended(message=" \n"), "exit code 1: ValueError: no such key"),
        (ended(139, signal=11), "killed by SIGSEGV: ValueError: no such key"),
        (ended(143, ended_by=EndedBy.DEADLINE), "DeadlineExceeded"),
        (RunOutcome((ContainerResult(3),)), "exit code 3"),
        (
            RunOutcome((ContainerResult(0), ContainerResult(2, "b", log_tail=SAID))),
            "exit code 2: ValueError: no such key",
        ),
    ],
)
def test_a_failure_is_told_with_the_line_that_matters(outcome: RunOutcome, words: str) -> None:
    assert failure_in_words(classify(with_evidence(outcome))) == words


def test_the_line_is_told_apart_where_the_words_do_not_have_it() -> None:
    lines = list(failure_lines(classify(with_evidence(ended(143, ended_by=EndedBy.DEADLINE))), 2))
    assert lines[:2] == ["Attempt 2 failed: DeadlineExceeded.", "Its output says: ValueError: no such key"]
    assert next(failure_lines(classify(with_evidence(ended())), 2)) == (
        "Attempt 2 failed: exit code 1: ValueError: no such key."
    )


def test_a_success_is_kept_as_it_is() -> None:
    outcome = ended(0)
    assert with_evidence(outcome) is outcome


def test_a_message_is_made_of_the_log_only_where_a_program_failed_and_left_none() -> None:
    good, silent = ContainerResult(0, "good"), ContainerResult(1, "silent")
    spoke, own = ContainerResult(1, "spoke", message="m"), ContainerResult(1, "own", log_tail=("mine",))
    kept = with_evidence(RunOutcome((good, silent, spoke, own), log_tail=SAID))
    assert [(one.message, one.message_from_log) for one in kept.containers] == [
        ("", False),
        ("loading\nValueError: no such key\nbye", True),
        ("m", False),
        ("mine", True),
    ]
    assert with_evidence(RunOutcome((silent,))).containers == (silent,)


def test_a_rule_about_the_message_sees_the_end_of_the_log_and_says_so() -> None:
    rule = Rule(Action.RETRY, "key", termination_message="no such key")
    policies = PolicySet.compile([RetryPolicy("p", (rule,))])
    [told] = policies.considered(classify(with_evidence(ended())))
    assert told.matched
    assert told.because == "the end of its log 'loading\\nValueError: no such key\\nbye' matches 'no such key'"
    [missed] = policies.considered(classify(with_evidence(evolved("x" * 300))))[:1]
    assert not missed.matched
    assert missed.because == "the end of its log '..." + "x" * 117 + "' does not match 'no such key'"


def evolved(line: str) -> RunOutcome:
    return RunOutcome((ContainerResult(1),), log_tail=(line,))


def test_the_reason_of_a_job_is_the_line_that_matters(lab: Lab) -> None:
    job = lab.submit(job_named("bad"), SimulatedRun(duration_s=1.0, outcome=ended()))
    lab.pass_s(3)
    assert (lab.job(job).state, lab.job(job).reason) == (
        JobState.FAILED,
        "exit code 1: ValueError: no such key; no retry policy applies",
    )
    assert lab.attempts(job)[0].failure == classify(with_evidence(lab.runs(job)[0].outcome or ended(0)))


PRINTED = "Traceback\n\x1b[31mNCCL WARN timeout on rank 3\x1b[0m\n" + "step\r" * 100 + "\nValueError: key\n"
FOUND = [
    ("a word", "NCCL", "NCCL WARN timeout on rank 3"),
    ("without regard to case", "(?i)nccl warn", "NCCL WARN timeout on rank 3"),
    ("at the ends of a line", "^NCCL.*3$", "NCCL WARN timeout on rank 3"),
    ("over lines", r"(?s)rank \d.*ValueError", "NCCL WARN timeout on rank 3"),
    ("in the last line", "ValueError", "ValueError: key"),
    ("not there", "CUDA", None),
    ("not the whole text", r"\AValueError", None),
    ("what ends in a quotation", r"\QValueError: key", "ValueError: key"),
]


@pytest.mark.parametrize(("pattern", "line"), [pytest.param(*row[1:], id=row[0]) for row in FOUND])
def test_a_pattern_is_found_in_the_output_with_its_line(pattern: str, line: str | None) -> None:
    expected = () if line is None else (LogMatch(pattern, line),)
    patterns = LogPatterns(["never", pattern])
    assert patterns.found_in(with_evidence_of(patterns)) == expected
    assert with_evidence(RunOutcome((ContainerResult(1),), log=PRINTED), patterns).log_matches == expected


def with_evidence_of(patterns: LogPatterns) -> str:
    assert patterns.found_in("") == NO_PATTERNS.found_in(PRINTED) == ()
    return readable(PRINTED)


def test_patterns_beside_others_are_found_with_them_and_what_is_no_pattern_is_left_out() -> None:
    patterns = LogPatterns(["a", "(", "b"], beside=LogPatterns(["c", "a"]))
    assert [found.pattern for found in patterns.found_in("cba")] == ["a", "b", "c", "a"]


def test_what_is_kept_of_many_patterns_is_bounded() -> None:
    found = LogPatterns([f"x{{{number}}}" for number in range(1, 200)]).found_in("x" * 100_000)
    assert len(found) == 199
    assert sum(len(one.line) for one in found) <= 50 * LONGEST_LINE


def test_the_output_itself_is_not_kept() -> None:
    kept = with_evidence(RunOutcome((ContainerResult(1),), log="Error: long ago\n" + "x\n" * 30_000))
    assert (kept.log, kept.error_line) == ("", "Error: long ago")
    assert with_evidence(RunOutcome((ContainerResult(0),), log="x")) == RunOutcome((ContainerResult(0),))


NCCL = Rule(Action.RETRY, "nccl", log="^NCCL WARN", retry_limit=1)
CRASHES = SimulatedRun(duration_s=1.0, outcome=RunOutcome((ContainerResult(1, reason="Error"),), log=PRINTED))


def test_a_rule_about_the_output_decides_and_the_evidence_outlives_the_controller(lab: Lab) -> None:
    gang = job_named("train", RetryPolicy("p", (NCCL,)), gang=2)
    job = lab.submit(gang, lambda order: CRASHES if order.rank and order.attempt == 1 else exits(0, after_s=9.0))
    lab.pass_s(2, every_s=0.5)
    lab.restart_controller()
    lab.pass_s(60)
    first = lab.attempts(job)[0]
    assert lab.job(job).state is JobState.SUCCEEDED
    assert first.decision is not None
    assert (first.decision.rule, first.decision.counter) == ("nccl", "p/nccl")
    assert first.failure is not None
    assert first.failure.log_matches[0] == LogMatch("^NCCL WARN", "NCCL WARN timeout on rank 3")
    assert [run.outcome.log for run in lab.runs(job) if run.outcome] == [""] * 4


def test_a_stored_policy_and_a_category_look_into_the_output_too(lab: Lab) -> None:
    lab.store.put_entry(FailureCategory("gpu", (CategoryRule(log="^NCCL"),), hint="look at the fabric"))
    lab.store.put_entry(RetryPolicy("stored", (NCCL,)))
    job = lab.submit(job_named("train", retry_policies=("stored",)), CRASHES)
    lab.pass_s(30)
    assert [attempt.decision.rule for attempt in lab.attempts(job) if attempt.decision] == ["nccl", "nccl"]
    assert {attempt.failure.category for attempt in lab.attempts(job) if attempt.failure} == {"gpu"}
