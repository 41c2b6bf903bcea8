"""The retry policy of sessions: its fields and defaults, partial documents, precedence, and its one rule.

A document may set only some of the nine fields. A field that it leaves out is decided by the next layer; a field that
is null is set. Lists of causes replace each other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from holdfast.domain.failure import NEVER_RETRIED, Cause
from holdfast.domain.policy.model import Action, Backoff, JitterMode, RetryPolicy, Rule
from holdfast.domain.record import Struct, asdict
from holdfast.domain.suggestion import closest
from holdfast.errors import InvalidPolicy, Problem

LONGEST_DELAY_S = 86_400.0
"""No delay is longer, whatever a policy says."""
HIGHEST_MAX_RETRIES = 1000
POLICY_NAME = "session"
RULE_NAME = "eligible"
_MOST_CAUSES = 100
_MOST_UNKNOWN = 20
_LONGEST_QUOTE = 80


class BackoffStrategy(StrEnum):
    """How the delay changes from retry to retry."""

    FIXED = "fixed"
    EXPONENTIAL = "exponential"


class RetryEligibleCause(StrEnum):
    """Causes of failure that a policy may name; all are eligible by default."""

    AGENT_TRANSIENT = "agent_transient"
    """The node failed, not the program."""
    SCHEDULER_TIMEOUT = "scheduler_timeout"
    """No place was found in time, or the node did not start it in time."""
    IMAGE_PULL_FAILURE = "image_pull_failure"
    """The image could not be fetched."""
    KERNEL_NONZERO_EXIT = "kernel_nonzero_exit"
    """The program ended with a non-zero exit code or by a signal."""
    OOM_KILLED = "oom_killed"
    """It used more memory than it requested, with evidence."""
    UNKNOWN = "unknown"
    """Any other failure, such as a time limit or a stall."""

    @classmethod
    def defaults(cls) -> frozenset[RetryEligibleCause]:
        """Return the causes that are eligible by default."""
        return frozenset(cls)


class SessionRetryPolicy(Struct, frozen=True):
    """How a failed batch session is retried; field names, bounds and defaults are those of Backend.AI's document."""

    max_retries: int = 0
    """Retries after the first session; 0 to 1,000."""
    retry_delay: float = 60.0
    """Seconds before the first retry; more than 0."""
    backoff: BackoffStrategy = BackoffStrategy.FIXED
    """``fixed``, or ``exponential``: multiplied from retry to retry."""
    backoff_multiplier: float = 2.0
    """More than 0; less than 1 shortens the delay from retry to retry."""
    max_retry_delay: float | None = 3600.0
    """Seconds that no delay exceeds, jitter included; null leaves only the ceiling of a day."""
    jitter: JitterMode = JitterMode.DETERMINISTIC
    """``none``, ``deterministic`` (from the session's id and its retry count) or ``random``."""
    jitter_ratio: float = 0.25
    """The most that jitter adds, as a share of the delay; 0 to 1."""
    eligible_causes: frozenset[RetryEligibleCause] = RetryEligibleCause.defaults()
    """Causes that are retried; an empty list retries none."""
    emit_retry_events: bool = True
    """Whether ``session.retry_scheduled`` and ``session.retry_exhausted`` are sent."""


def document(policy: SessionRetryPolicy) -> dict[str, Any]:
    """Write a policy as JSON values, with every field and with its causes sorted."""
    return {name: _canonical(name, value) for name, value in asdict(policy).items()}


def partial(document: object, path: str = "") -> dict[str, Any]:
    """Validate a document that sets some fields of a policy.

    Args:
        document: The document, of JSON values.
        path: Its field path, which the paths of problems begin with.

    Returns:
        The same fields in canonical form; one that is absent stays absent.

    Raises:
        InvalidPolicy: Something is wrong; the problems name every field.
    """
    problems = [*_problems(document, path)]
    if problems or not isinstance(document, Mapping):
        raise InvalidPolicy(problems=problems)
    return {name: _canonical(name, document[name]) for name in _FIELDS if name in document}


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge partial documents, the most specific first: its fields win."""
    return {name: value for layer in reversed(layers) for name, value in layer.items()}


def effective(*layers: Mapping[str, Any], path: str = "retry_policy") -> SessionRetryPolicy:
    """Return the policy that partial documents give together with the defaults.

    Args:
        layers: Of the session, its project, its domain and the cluster, in this order.
        path: The field path that problems begin with.

    Raises:
        InvalidPolicy: The merged document is wrong.
    """
    fields = partial(merged(*layers), path)
    for name, kind in (("backoff", BackoffStrategy), ("jitter", JitterMode)):
        if name in fields:
            fields[name] = kind(fields[name])
    if "eligible_causes" in fields:
        fields["eligible_causes"] = frozenset(map(RetryEligibleCause, fields["eligible_causes"]))
    return SessionRetryPolicy(**fields)


_FOLDED = {Cause.STALLED: RetryEligibleCause.UNKNOWN, Cause.EXECUTION_TIMEOUT: RetryEligibleCause.UNKNOWN}
"""Causes that the document has no name for."""


def eligible_cause(cause: Cause) -> RetryEligibleCause | None:
    """Return the cause that a policy names for a failure; ``None`` if it is never retried."""
    if cause in NEVER_RETRIED:
        return None
    return _FOLDED.get(cause) or RetryEligibleCause(cause.value)


def compiled(policy: SessionRetryPolicy) -> RetryPolicy:
    """Compile a policy into one rule that retries its causes; everything else fails."""
    longest_s = LONGEST_DELAY_S if policy.max_retry_delay is None else min(policy.max_retry_delay, LONGEST_DELAY_S)
    rule = Rule(
        Action.RETRY,
        RULE_NAME,
        causes=frozenset(cause.value for cause in Cause if eligible_cause(cause) in policy.eligible_causes),
        retry_limit=policy.max_retries,
        backoff=Backoff(
            initial_s=policy.retry_delay,
            max_s=longest_s,
            multiplier=1.0 if policy.backoff is BackoffStrategy.FIXED else policy.backoff_multiplier,
            jitter=policy.jitter,
            jitter_ratio=policy.jitter_ratio,
            of_session=True,
        ),
    )
    return RetryPolicy(POLICY_NAME, (rule,))


def _canonical(name: str, value: Any) -> Any:  # noqa: ANN401 - values of several types
    if name == "eligible_causes":
        return sorted({str(cause) for cause in value})
    if name == "max_retries":
        return int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return str(value) if isinstance(value, str) else value


class _Field(NamedTuple):
    """Which values a field of a document allows."""

    accepts: Callable[[Any], bool]
    allowed: tuple[str, ...]


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _is_positive(value: Any) -> bool:  # noqa: ANN401 - as in a document
    return _is_number(value) and value > 0


def _is_count(value: Any) -> bool:  # noqa: ANN401 - as in a document
    return _is_number(value) and int(value) == value and 0 <= value <= HIGHEST_MAX_RETRIES


def _choice(*words: str) -> _Field:
    return _Field(lambda value: isinstance(value, str) and value in words, words)


_SECONDS = "a number of seconds greater than 0"
_CAUSES = tuple(cause.value for cause in RetryEligibleCause)
_FIELDS: dict[str, _Field] = {
    "max_retries": _Field(_is_count, (f"a whole number from 0 to {HIGHEST_MAX_RETRIES}",)),
    "retry_delay": _Field(_is_positive, (_SECONDS,)),
    "backoff": _choice(*BackoffStrategy),
    "backoff_multiplier": _Field(_is_positive, ("a number greater than 0",)),
    "max_retry_delay": _Field(lambda value: value is None or _is_positive(value), (_SECONDS, "null")),
    "jitter": _choice(*JitterMode),
    "jitter_ratio": _Field(lambda value: _is_number(value) and 0 <= value <= 1, ("a number from 0 to 1",)),
    "eligible_causes": _Field(
        lambda value: isinstance(value, (list, tuple, set, frozenset)) and len(value) <= _MOST_CAUSES,
        (f"a list of any of {', '.join(_CAUSES)}",),
    ),
    "emit_retry_events": _Field(lambda value: isinstance(value, bool), ("true", "false")),
}


def _problems(document: object, path: str) -> Iterator[Problem]:
    if not isinstance(document, Mapping):
        yield Problem(path, f"must be an object with fields of a retry policy, not {_quoted(document)}", tuple(_FIELDS))
        return
    prefix = f"{path}." if path else ""
    for name, field in _FIELDS.items():
        if name not in document:
            continue
        value = document[name]
        if not field.accepts(value):
            hint = "leave it out to inherit it" if value is None else closest(value, field.allowed)
            yield Problem(f"{prefix}{name}", f"{_quoted(value)} is not allowed", field.allowed, hint)
        elif name == "eligible_causes":
            yield from _of_causes(value, f"{prefix}{name}")
    unknown = [name for name in document if name not in _FIELDS]
    for name in unknown[:_MOST_UNKNOWN]:
        yield Problem(f"{prefix}{name}", "unknown field", tuple(_FIELDS), closest(name, _FIELDS))
    if len(unknown) > _MOST_UNKNOWN:
        yield Problem(path, f"has {len(unknown) - _MOST_UNKNOWN} more unknown fields", tuple(_FIELDS))


def _of_causes(causes: Iterable[object], path: str) -> Iterator[Problem]:
    for index, cause in enumerate(causes):
        if isinstance(cause, str) and cause in _CAUSES:
            continue
        message, hint = f"unknown cause {_quoted(cause)}", closest(cause, _CAUSES)
        if isinstance(cause, str) and cause in NEVER_RETRIED:
            message, hint = f"{_quoted(cause)} is never retried, whatever a policy says", "remove it"
        elif isinstance(cause, str) and cause in _FOLDED:
            hint = f"it counts as {_FOLDED[Cause(cause)]}"
        yield Problem(f"{path}[{index}]", message, _CAUSES, hint)


def _quoted(value: object) -> str:
    """Write a value as in JSON, shortened."""
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 3]}..."
