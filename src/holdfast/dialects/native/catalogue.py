"""Reads and writes queues, the operator's settings, and the limits of handlers in both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.access import PERMISSIONS, read_access, read_permissions, write_access, write_permissions
from holdfast.dialects.native.envelope import close_envelope, open_envelope
from holdfast.dialects.native.job import LONGEST_ANNOTATION, MOST_LABELS, read_labels, read_policy_names
from holdfast.dialects.native.notify import read_notify, write_notify
from holdfast.dialects.native.policy import HIGHEST_LIMIT, SESSION_RETRY, read_backoff, read_session_retry
from holdfast.dialects.native.resources import MOST_GPUS, plain_amount, read_ceilings, read_named
from holdfast.dialects.native.writing import write_backoff
from holdfast.dialects.reading import Fields
from holdfast.domain.job import Ceiling, Queue, UserLimits
from holdfast.domain.lifecycle import ATTEMPTS, SCHEDULE
from holdfast.domain.policy.model import BuiltIn, RetryDefaults, RetrySettings
from holdfast.domain.suggestion import closest
from holdfast.domain.terms.projects import DEFAULT_DOMAIN
from holdfast.domain.units import format_duration
from holdfast.errors import InvalidRequest, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.access.grants import Access
    from holdfast.domain.lifecycle.engine import HandlerLimits


SHORTEST_S, LONGEST_S = 0.001, 30 * 86_400.0
MOST_RETRIES = 1_000_000
FIELD = "handlerLimits"
TIMED = frozenset(row.name for row in ATTEMPTS.handlers if row.timeout_s is not None) | frozenset(
    row.name for row in ATTEMPTS.promotions if row.timeout_s is not None
)
"""The handlers whose timeout can be set, from the transition table."""
COUNTED = frozenset(row.name for row in ATTEMPTS.handlers if row.max_retries is not None)
"""The handlers whose retries can be set."""


def read_handler_limits(fields: Fields) -> HandlerLimits:
    """Read ``handlerLimits``; omitted limits are inherited, and ``maxRetries: null`` means no limit."""
    part = fields.nested(FIELD)
    limits: dict[str, dict[str, float | None]] = {}
    if part is None:
        return limits
    for name in part.value:
        if name not in TIMED | COUNTED:
            allowed = sorted(TIMED | COUNTED)
            part.problem(str(name), "has no limits to set", allowed=allowed, hint=closest(str(name), allowed))
            part.raw(name)
            continue
        limits_read = _read_one(part, name)
        if limits_read:
            limits[name] = limits_read
    return limits


def _read_one(part: Fields, name: str) -> dict[str, float | None]:
    row = part.nested(name)
    if row is None:
        return {}
    values: dict[str, float | None] = {}
    timeout_s = row.duration("timeout", low=SHORTEST_S, high=LONGEST_S)
    if name not in TIMED and "timeout" in row.value:
        hint = "a job's schedulingTimeout is" if name == SCHEDULE.name else None
        row.problem("timeout", f"is not {name}'s to set", hint=hint)
    elif timeout_s is not None:
        values["timeout_s"] = timeout_s
    retries = row.integer("maxRetries", low=0, high=MOST_RETRIES)
    if name not in COUNTED and "maxRetries" in row.value:
        row.problem("maxRetries", f"is not {name}'s to set")
    elif retries is not None or row.value.get("maxRetries", 0) is None:
        values["max_retries"] = retries
    row.finish()
    return values


def write_handler_limits(limits: HandlerLimits) -> dict[str, Any]:
    """Write limits; they read back equal."""
    names = {"timeout_s": "timeout", "max_retries": "maxRetries"}
    return {name: {names[key]: value for key, value in limit.items()} for name, limit in limits.items()}


HEAVIEST = 1_000_000.0
MOST_JOBS = 1_000_000_000


def read_queue_manifest(value: Mapping[str, Any], *, path: str, problems: list[Problem]) -> Queue | None:
    """Read a queue; ``None`` when anything was wrong."""
    before = len(problems)
    opened = open_envelope(Fields(value, path, problems), spec_required=False)
    spec = opened.spec or Fields({}, f"{path}.spec" if path else "spec", problems)
    weight = spec.number("weight", low=0, high=HEAVIEST)
    if weight == 0:
        spec.problem("weight", "must be more than 0", hint="paused: true starts none of its jobs")
    queue = Queue(
        name=opened.name or "",
        weight=1.0 if weight is None else weight,
        max_running=_read_max_running(spec),
        max_running_jobs=spec.integer("maxRunningJobs", low=1, high=MOST_JOBS),
        per_user=_read_per_user(spec),
        retry_policies=read_policy_names(spec),
        paused=spec.flag("paused"),
        handler_limits=read_handler_limits(spec),
        notify=read_notify(spec),
        permissions=read_permissions(spec),
        labels=read_labels(spec, "labels"),
        annotations=spec.mapping("annotations", most=MOST_LABELS, longest=LONGEST_ANNOTATION),
        max_queued=spec.integer("maxQueued", low=0, high=MOST_JOBS),
        submissions_per_minute=spec.integer("submissionsPerMinute", low=0, high=MOST_JOBS),
        domain=spec.name("domain") or DEFAULT_DOMAIN,
        session_retry=read_session_retry(spec),
    )
    close_envelope(opened)
    return queue if len(problems) == before else None


def _read_per_user(spec: Fields) -> UserLimits:
    part = spec.nested("perUser")
    if part is None:
        return UserLimits()
    limits = UserLimits(
        max_running=_read_max_running(part),
        max_running_jobs=part.integer("maxRunningJobs", low=1, high=MOST_JOBS),
        max_queued=part.integer("maxQueued", low=0, high=MOST_JOBS),
        submissions_per_minute=part.integer("submissionsPerMinute", low=0, high=MOST_JOBS),
    )
    part.finish()
    return limits


def _read_max_running(spec: Fields) -> Ceiling:
    part = spec.nested("maxRunning")
    if part is None:
        return Ceiling()
    gpu = part.integer("gpu", low=0, high=MOST_GPUS)
    ceiling = Ceiling(part.cpu("cpu"), part.memory("memory"), gpu, read_ceilings(part))
    part.finish()
    return ceiling


def write_queue(queue: Queue) -> dict[str, Any]:
    """Write a queue's ``spec``; it reads back equal."""
    spec: dict[str, Any] = {"weight": queue.weight, "paused": queue.paused, **_write_limits(queue)}
    if per_user := _write_limits(queue.per_user):
        spec["perUser"] = per_user
    if queue.retry_policies:
        spec["retryPolicies"] = list(queue.retry_policies)
    if queue.domain != DEFAULT_DOMAIN:
        spec["domain"] = queue.domain
    if queue.session_retry:
        spec[SESSION_RETRY] = dict(queue.session_retry)
    if queue.handler_limits:
        spec[FIELD] = write_handler_limits(queue.handler_limits)
    if queue.notify:
        spec["notify"] = write_notify(queue.notify)
    if queue.permissions:
        spec[PERMISSIONS] = write_permissions(queue.permissions)
    for name, pairs in (("labels", queue.labels), ("annotations", queue.annotations)):
        if pairs:
            spec[name] = dict(pairs)
    return spec


def _write_limits(limits: Queue | UserLimits) -> dict[str, Any]:
    """Write the limits that a queue can have in all and per user."""
    most, written = limits.max_running, dict[str, Any]()
    amounts = {"cpu": None if most.cpu_m is None else f"{most.cpu_m}m", "memory": most.memory, "gpu": most.gpu}
    ceiling: dict[str, Any] = {name: limit for name, limit in amounts.items() if limit is not None}
    if ceiling := {**ceiling, **{name: plain_amount(amount) for name, amount in most.named}}:
        written["maxRunning"] = ceiling
    if limits.max_running_jobs is not None:
        written["maxRunningJobs"] = limits.max_running_jobs
    intake = {"maxQueued": limits.max_queued, "submissionsPerMinute": limits.submissions_per_minute}
    return written | {name: most for name, most in intake.items() if most is not None}


_SESSION_DEFAULT, _SESSION_RETRIES = "sessionRetryDefault", "sessionRetries"


def read_settings(value: Mapping[str, Any]) -> tuple[RetrySettings, str | None, Access]:
    """Read the settings, the name of the default policy, and who has which rights.

    Missing settings get their defaults. Missing rights stay as they are, so that a program that does not know them
    takes none away.

    Raises:
        InvalidRequest: With every problem found.
    """
    problems: list[Problem] = []
    fields = Fields(value, "", problems)
    limit = fields.integer("globalMaxRetries", low=0, high=HIGHEST_LIMIT)
    backoff = read_backoff(fields, "defaultBackoff")
    policy = fields.name("defaultPolicyName")
    handler_limits = read_handler_limits(fields)
    share = fields.number("retryShare", low=0.0, high=1.0)
    builtin = fields.choice("builtinPolicy", BuiltIn)
    part = fields.nested("resources")
    resources = () if part is None else read_named(part)
    if part is not None:
        part.finish()
    fluster = _read_retry_defaults(fields)
    sessions = read_session_retry(fields, _SESSION_DEFAULT), fields.flag(_SESSION_RETRIES, default=True)
    access = read_access(fields)
    fields.raw("warnings")  # Settings that were read can be sent back.
    fields.finish()
    if problems:
        msg = "the settings are not valid"
        raise InvalidRequest(msg, problems=problems)
    d = RetrySettings()
    default_backoff = d.default_backoff if backoff is None else backoff
    retry_share = d.retry_share if share is None else share
    builtin = builtin or d.builtin
    settings = RetrySettings(
        limit, default_backoff, handler_limits, resources, retry_share, builtin, fluster, *sessions
    )
    return settings, policy, access


def write_settings(settings: RetrySettings, default_policy: str | None, access: Access) -> dict[str, Any]:
    """Write the settings in full; they read back equal."""
    return {
        "globalMaxRetries": settings.global_max_retries,
        "defaultBackoff": write_backoff(settings.default_backoff),
        "defaultPolicyName": default_policy,
        FIELD: write_handler_limits(settings.handler_limits),
        "resources": {name: plain_amount(amount) for name, amount in settings.resources},
        "retryShare": settings.retry_share,
        "builtinPolicy": settings.builtin.value,
        "fluster": _write_retry_defaults(settings.fluster),
        _SESSION_DEFAULT: dict(settings.session_retry_default),
        _SESSION_RETRIES: settings.session_retries,
        **write_access(access),
    }


_FLUSTER = "fluster"
_FAILURE, _PREEMPTION, _DELAY = "defaultMaxRetriesFailure", "defaultMaxRetriesPreemption", "defaultRetryDelay"
_MOST_RETRIES = (1 << 31) - 1
_LONGEST_S = 86_400.0
_MS = 1000


def _read_retry_defaults(settings: Fields) -> RetryDefaults:
    """Read the defaults; a missing one is the design document's."""
    part, default = settings.nested(_FLUSTER), RetryDefaults()
    if part is None:
        return default
    failure, preemption = (part.integer(name, low=0, high=_MOST_RETRIES) for name in (_FAILURE, _PREEMPTION))
    delay_s = part.duration(_DELAY, high=_LONGEST_S)
    part.finish()
    return RetryDefaults(
        default.max_retries_failure if failure is None else failure,
        default.max_retries_preemption if preemption is None else preemption,
        default.retry_delay_ms if delay_s is None else round(delay_s * _MS),
    )


def _write_retry_defaults(defaults: RetryDefaults) -> dict[str, Any]:
    """Write the defaults in full; they read back equal."""
    delay_ms = defaults.retry_delay_ms
    delay = format_duration(delay_ms / _MS) if delay_ms < _MS or delay_ms % _MS == 0 else delay_ms / _MS
    return {_FAILURE: defaults.max_retries_failure, _PREEMPTION: defaults.max_retries_preemption, _DELAY: delay}
