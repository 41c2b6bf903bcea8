"""Which rule matches which failure, and what is said about it."""

from __future__ import annotations

import pytest

from holdfast.domain.failure import Cause, ContainerResult, Failure, LogMatch
from holdfast.domain.policy.model import Action, ContainerScope, ExitCodeOperator, ExitCodes, Rule
from holdfast.domain.policy.patterns import Pattern, PatternSet
from holdfast.errors import InvalidPolicy
from tests.reading import compile_rule

IN, NOT_IN = ExitCodeOperator.IN, ExitCodeOperator.NOT_IN
ANY = ContainerScope.ANY_FAILED


def codes(operator: ExitCodeOperator, *values: int, scope: ContainerScope = ContainerScope.FIRST_FAILED) -> ExitCodes:
    return ExitCodes(operator, frozenset(values), scope)


def rule(**matchers: object) -> Rule:
    return Rule(Action.RETRY, **matchers)  # type: ignore[arg-type]


def failed(*containers: ContainerResult, **facts: object) -> Failure:
    return Failure(Cause.KERNEL_NONZERO_EXIT, frozenset(facts.pop("conditions", ())), containers, **facts)  # type: ignore[arg-type, call-overload]


def box(code: int | None, name: str = "main", **facts: object) -> ContainerResult:
    return ContainerResult(code, name, **facts)  # type: ignore[arg-type]


INIT = box(1, "setup", init=True)

TABLE: list[tuple[str, Rule, Failure, bool, str]] = [
    ("no matcher", rule(), failed(), True, "the rule matches every failure"),
    ("in", rule(exit_codes=codes(IN, 74, 75)), failed(box(74)), True, "exit code 74 is one of 74, 75"),
    ("in, miss", rule(exit_codes=codes(IN, 75)), failed(box(74)), False, "exit code 74 is not one of 75"),
    ("not in", rule(exit_codes=codes(NOT_IN, 1)), failed(box(42)), True, "exit code 42 is not one of 1"),
    ("not in, miss", rule(exit_codes=codes(NOT_IN, 42)), failed(box(42)), False, "exit code 42 is one of 42"),
    (
        "0 in",
        rule(exit_codes=codes(IN, 0)),
        failed(box(0)),
        False,
        "no container failed (init containers are not considered)",
    ),
    (
        "0 not in",
        rule(exit_codes=codes(NOT_IN, 1)),
        failed(box(0)),
        False,
        "no container failed (init containers are not considered)",
    ),
    (
        "no exit code",
        rule(exit_codes=codes(NOT_IN, 1)),
        failed(box(None)),
        False,
        "no container failed (init containers are not considered)",
    ),
    (
        "first failed",
        rule(exit_codes=codes(IN, 42)),
        failed(box(1, "a"), box(42, "b")),
        False,
        "exit code 1 is not one of 42",
    ),
    (
        "any failed",
        rule(exit_codes=codes(IN, 42, scope=ANY)),
        failed(box(1, "a"), box(42, "b")),
        True,
        "exit code 1, 42 is one of 42",
    ),
    (
        "skips the good",
        rule(exit_codes=codes(IN, 99)),
        failed(box(0, "a"), box(99, "b")),
        True,
        "exit code 99 is one of 99",
    ),
    (
        "named",
        rule(exit_codes=codes(IN, 42), container_name="b"),
        failed(box(1, "a"), box(42, "b")),
        True,
        "exit code 42 is one of 42; container 'b' failed",
    ),
    (
        "named, not failed",
        rule(container_name="b"),
        failed(box(1, "a"), box(0, "b")),
        False,
        "container 'b' did not fail (init containers are not considered)",
    ),
    (
        "init left out",
        rule(exit_codes=codes(IN, 1)),
        failed(INIT),
        False,
        "no container failed (init containers are not considered)",
    ),
    (
        "init asked for",
        rule(exit_codes=codes(IN, 1), include_init_containers=True),
        failed(INIT),
        True,
        "exit code 1 is one of 1",
    ),
    (
        "main before init",
        rule(exit_codes=codes(IN, 7), include_init_containers=True),
        failed(INIT, box(7)),
        True,
        "exit code 7 is one of 7",
    ),
    (
        "init asked for, none",
        rule(exit_codes=codes(IN, 1), include_init_containers=True),
        failed(),
        False,
        "no container failed",
    ),
    (
        "condition",
        rule(conditions=frozenset({"Evicted", "Preempted"})),
        failed(conditions=["Evicted"]),
        True,
        "condition Evicted holds",
    ),
    (
        "condition, miss",
        rule(conditions=frozenset({"Evicted"})),
        failed(conditions=["AppError"]),
        False,
        "condition Evicted does not hold, only AppError",
    ),
    (
        "condition, none",
        rule(conditions=frozenset({"Evicted"})),
        failed(),
        False,
        "condition Evicted does not hold",
    ),
    (
        "condition from a container's reason",
        rule(conditions=frozenset({"OOMKilled"})),
        failed(box(137, reason="OOMKilled")),
        True,
        "condition OOMKilled holds",
    ),
    (
        "condition of a sidecar",
        rule(conditions=frozenset({"OOMKilled"}), container_name="side"),
        failed(box(137, "side", reason="OOMKilled"), box(1), conditions=["OOMKilled"]),
        True,
        "condition OOMKilled holds for container 'side'; container 'side' failed",
    ),
    (
        "condition of another",
        rule(conditions=frozenset({"OOMKilled"}), container_name="main"),
        failed(box(137, "side", reason="OOMKilled"), box(1), conditions=["OOMKilled"]),
        False,
        "condition OOMKilled does not hold for container 'main'",
    ),
    (
        "an engine's OOM is the sole failed container's",
        rule(conditions=frozenset({"OOMKilled"}), container_name="main"),
        failed(box(137), conditions=["OOMKilled"]),
        True,
        "condition OOMKilled holds for container 'main'; container 'main' failed",
    ),
    (
        "AppError of a container",
        rule(conditions=frozenset({"AppError"}), container_name="main"),
        failed(box(1), conditions=["AppError"]),
        True,
        "condition AppError holds for container 'main'; container 'main' failed",
    ),
    (
        "a condition of the run is no container's",
        rule(conditions=frozenset({"Preempted"}), container_name="main"),
        failed(box(143), conditions=["Preempted"]),
        False,
        "condition Preempted does not hold for container 'main'",
    ),
    (
        "message",
        rule(termination_message="(?i)cuda.*error"),
        failed(box(1, message="CUDA memory error on device 0")),
        True,
        "termination message 'CUDA memory error on device 0' matches '(?i)cuda.*error'",
    ),
    (
        "message of the second",
        rule(termination_message="cuda"),
        failed(box(1, "a"), box(1, "b", message="cuda")),
        True,
        "termination message 'cuda' matches 'cuda'",
    ),
    (
        "message, miss",
        rule(termination_message="cuda"),
        failed(box(1, message="segfault")),
        False,
        "termination message 'segfault' does not match 'cuda'",
    ),
    (
        "empty message",
        rule(termination_message=".*"),
        failed(box(1)),
        False,
        "the program left no termination message to match '.*'",
    ),
    (
        "log",
        rule(log="NCCL|Xid"),
        failed(box(1), log_matches=(LogMatch("Xid", "a"), LogMatch("NCCL|Xid", "NCCL WARN timeout"))),
        True,
        "line 'NCCL WARN timeout' of its output matches 'NCCL|Xid'",
    ),
    (
        "log, by the line that was kept",
        rule(log="NCCL"),
        failed(error_line="RuntimeError: NCCL error"),
        True,
        "line 'RuntimeError: NCCL error' of its output matches 'NCCL'",
    ),
    (
        "log, miss",
        rule(log="NCCL"),
        failed(box(1), error_line="ValueError", log_matches=(LogMatch("Xid", "NCCL"),)),
        False,
        "the end of its output does not match 'NCCL'",
    ),
    ("no log", rule(log=".*"), failed(box(1)), False, "it printed nothing to match '.*'"),
    (
        "message without a failed container",
        rule(termination_message=".*"),
        failed(box(0, message="x"), conditions=["Preempted"]),
        False,
        "no container failed (init containers are not considered)",
    ),
    (
        "message that is no text",
        rule(termination_message="a.b"),
        failed(box(1, message="a\udcffb")),
        True,
        "termination message 'a\\udcffb' matches 'a.b'",
    ),
    (
        "long message",
        rule(termination_message="z"),
        failed(box(1, message="a" * 200)),
        False,
        "termination message '" + "a" * 117 + "...' does not match 'z'",
    ),
    (
        "category",
        rule(categories=frozenset({"gpu", "net"})),
        failed(category="gpu"),
        True,
        "category gpu is one of gpu, net",
    ),
    (
        "category, none",
        rule(categories=frozenset({"gpu"})),
        failed(),
        False,
        "the failure has no category, so it is not one of gpu",
    ),
    (
        "subcategory, miss",
        rule(subcategories=frozenset({"a"})),
        failed(subcategory="b"),
        False,
        "subcategory b is not one of a",
    ),
    (
        "cause",
        rule(causes=frozenset({"kernel_nonzero_exit"})),
        failed(),
        True,
        "cause kernel_nonzero_exit is one of kernel_nonzero_exit",
    ),
    (
        "signal",
        rule(signals=frozenset({9, 15})),
        failed(box(137, signal=9)),
        True,
        "signal SIGKILL is one of SIGKILL, SIGTERM",
    ),
    (
        "signal, miss",
        rule(signals=frozenset({15})),
        failed(box(137, signal=9)),
        False,
        "signal SIGKILL is not one of SIGTERM",
    ),
    (
        "137 is not a signal",
        rule(signals=frozenset({9})),
        failed(box(137)),
        False,
        "it was not ended by a signal, so not by one of SIGKILL",
    ),
    ("shorter", rule(ran_shorter_than_s=60), failed(ran_s=30), True, "it ran for 30s, shorter than 1m"),
    ("shorter, equal", rule(ran_shorter_than_s=60), failed(ran_s=60), False, "it ran for 1m, not shorter than 1m"),
    ("longer", rule(ran_longer_than_s=60), failed(ran_s=61), True, "it ran for 1m1s, longer than 1m"),
    ("never ran", rule(ran_shorter_than_s=60), failed(), False, "it never ran, so not shorter than 1m"),
    (
        "all must hold",
        rule(conditions=frozenset({"AppError"}), exit_codes=codes(IN, 42)),
        failed(box(42), conditions=["AppError"]),
        True,
        "exit code 42 is one of 42; condition AppError holds",
    ),
    (
        "one does not hold",
        rule(conditions=frozenset({"AppError"}), exit_codes=codes(IN, 42)),
        failed(box(41), conditions=["AppError"]),
        False,
        "exit code 41 is not one of 42",
    ),
    (
        "an empty list accepts nothing",
        rule(conditions=frozenset()),
        failed(conditions=["AppError"]),
        False,
        "condition nothing does not hold, only AppError",
    ),
]


@pytest.mark.parametrize(
    ("a_rule", "failure", "matched", "because"), [pytest.param(*row[1:], id=row[0]) for row in TABLE]
)
def test_a_rule_matches_and_says_why(a_rule: Rule, failure: Failure, *, matched: bool, because: str) -> None:
    considered = compile_rule(a_rule).considered(failure)
    assert (considered.matched, considered.because) == (matched, because)
    assert considered.rule == "rule0"


def test_a_pattern_that_is_not_re2_is_an_error_for_its_writer_and_no_line_in_the_log(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(InvalidPolicy, match="is not RE2: missing"):
        Pattern("(")
    assert PatternSet(["fine", "("]).matching("fine") is None
    assert capfd.readouterr() == ("", "")
