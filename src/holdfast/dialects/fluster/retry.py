"""Reads a ``RetryConfig`` into one policy with two budgets, each with a counter and back-off of its own.

An absent field has the controller's default, and 0 is 0. A failure before the program's start counts against neither
budget. Source: Fluster's document, "Proposed Retry Design" and "Worker Failures vs Job Failures".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.reading import Fields
from holdfast.domain.failure import FailureCondition
from holdfast.domain.policy.model import Action, Backoff, ExitCodeOperator, ExitCodes, RetryDefaults, RetryPolicy, Rule
from holdfast.domain.record import Struct
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.workloads.spec import JobSpec

POLICY = "fluster"
UNSCHEDULABLE, PREEMPTION, LAUNCH = "unschedulable", "preemption", "launch-failed"
DENIED, FAILURE = "denied", "failure"
"""The names of the rules, in order."""
PLACE_LOST = frozenset(
    {
        FailureCondition.PREEMPTED,
        FailureCondition.EVICTED,
        FailureCondition.NODE_LOST,
        FailureCondition.EXECUTOR_LOST,
        FailureCondition.END_UNKNOWN,
        FailureCondition.IMAGE_PULL_FAILED,
    }
)
"""Failures of the worker in Fluster's sense: charged to ``max_retries_preemption``."""
NEVER_RAN = frozenset({FailureCondition.LAUNCH_FAILED})
LAUNCHES = 2
"""The limit for failures to start, which count against neither budget."""
MOST_RETRIES = (1 << 31) - 1
LONGEST_DELAY_MS = 100 * 365 * 86_400_000
MAX_DELAY_MS = 60_000
MULTIPLIER = 2.0
HIGHEST_MULTIPLIER = 1000.0
MOST_CODES = 256
_HIGHEST_CODE, _HIGHEST_SIGNAL = 255, 64
_MS = 1000


class RetryLimits(Struct, frozen=True):
    """The retry limits of a job."""

    failure: int
    preemption: int


def read_retry(retry: Mapping[str, Any] | None, defaults: RetryDefaults, problems: list[Problem]) -> RetryPolicy | None:
    """Read the retry configuration of a launch; ``None`` if anything is wrong.

    Args:
        retry: The fields of a ``RetryConfig`` that are set; ``None`` without one.
        defaults: The controller's values for fields that are not set.
        problems: Where to add problems, with paths below ``retry``.
    """
    before = len(problems)
    fields = Fields(retry or {}, "retry", problems)
    failure = _limit(fields, "max_retries_failure", defaults.max_retries_failure)
    preemption = _limit(fields, "max_retries_preemption", defaults.max_retries_preemption)
    backoff = _read_backoff(fields, defaults)
    allowed, denied = _read_codes(fields, "retry_on_exit_codes"), _read_codes(fields, "no_retry_on_exit_codes")
    fields.finish()
    if len(problems) > before:
        return None
    # A rule without codes would match everything.
    never = (Rule(Action.FAIL, DENIED, exit_codes=_in(denied)),) if denied else ()
    return RetryPolicy(
        name=POLICY,
        rules=(
            Rule(Action.FAIL, UNSCHEDULABLE, conditions=frozenset({FailureCondition.UNSCHEDULABLE})),
            Rule(Action.RETRY, PREEMPTION, conditions=PLACE_LOST, retry_limit=preemption, backoff=backoff),
            Rule(Action.RETRY, LAUNCH, conditions=NEVER_RAN, retry_limit=LAUNCHES, backoff=backoff),
            *never,
            Rule(Action.RETRY, FAILURE, exit_codes=_in(allowed), retry_limit=failure, backoff=backoff),
        ),
        default_action=Action.FAIL,
    )


def _limit(fields: Fields, name: str, default: int) -> int:
    limit = fields.integer(name, low=0, high=MOST_RETRIES)
    return default if limit is None else limit


def _read_backoff(fields: Fields, defaults: RetryDefaults) -> Backoff:
    """Read the delays; a delay that is set must be consistent with the default of the other."""
    initial_ms = fields.integer("initial_retry_delay_ms", low=0, high=LONGEST_DELAY_MS)
    max_ms = fields.integer("max_retry_delay_ms", low=0, high=LONGEST_DELAY_MS)
    multiplier = fields.number("backoff_multiplier", low=1.0, high=HIGHEST_MULTIPLIER)
    most = MAX_DELAY_MS if max_ms is None else max_ms
    if initial_ms is not None and initial_ms > most:
        remark = "" if fields.has("max_retry_delay_ms") else ", which is its default"
        message = f"{initial_ms} is more than max_retry_delay_ms, {most}{remark}"
        fields.problem("initial_retry_delay_ms", message, hint="raise max_retry_delay_ms, too")
    if max_ms is None:
        most = max(most, defaults.retry_delay_ms)
    first = defaults.retry_delay_ms if initial_ms is None else initial_ms
    return Backoff(min(first, most) / _MS, most / _MS, MULTIPLIER if multiplier is None else multiplier)


def _read_codes(fields: Fields, name: str) -> frozenset[int]:
    """Read Linux exit codes; 0 is no failure, so a rule about it never matches."""
    values = fields.items(name, most=MOST_CODES) or []
    codes = set[int]()
    for place, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int):
            fields.mistyped(f"{name}[{place}]", value, "a whole number")
        elif not 0 <= value <= _HIGHEST_CODE:
            of_signal = _HIGHEST_SIGNAL + value >= 0 > value  # The range as Python writes it.
            hint = f"of a program that signal {-value} ended it is {128 - value}" if of_signal else None
            fields.problem(f"{name}[{place}]", f"{value} is no exit code", allowed=("0 to 255",), hint=hint)
        else:
            codes.add(value)
    return frozenset(codes)


def _in(codes: frozenset[int]) -> ExitCodes | None:
    """Match any of some exit codes; without codes, any failure."""
    return ExitCodes(ExitCodeOperator.IN, codes) if codes else None


def retry_warnings(retry: Mapping[str, Any] | None) -> list[Problem]:
    """List the warnings about a valid ``RetryConfig``."""
    retry = retry or {}
    allowed, denied = (list(retry.get(name) or ()) for name in ("retry_on_exit_codes", "no_retry_on_exit_codes"))
    warnings = []
    for name, codes in (("retry_on_exit_codes", allowed), ("no_retry_on_exit_codes", denied)):
        if 0 in codes:
            warnings.append(Problem(f"retry.{name}[{codes.index(0)}]", "0 is a success, which is never retried"))
    if both := sorted({*allowed} & {*denied}):
        listed = ", ".join(map(str, both))
        message = f"{listed} is not retried: no_retry_on_exit_codes has it, too"
        warnings.append(Problem("retry.retry_on_exit_codes", message))
    if retry.get("max_retries_failure") == 0 and (allowed or denied):
        warnings.append(Problem("retry.max_retries_failure", "is 0, so that no exit code is retried"))
    return warnings


def limits_of(spec: JobSpec) -> RetryLimits | None:
    """Return the limits of a submitted job, including the controller's defaults; ``None`` for a job from elsewhere."""
    policy = next((policy for policy in spec.inline_policies if policy.name == POLICY), None)
    if policy is None:
        return None
    limits = {rule.name: rule.retry_limit or 0 for rule in policy.rules}
    return RetryLimits(limits.get(FAILURE, 0), limits.get(PREEMPTION, 0))
