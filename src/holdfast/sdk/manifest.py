"""Builds the manifest of a job from what a Python program says; the server checks its meaning."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from holdfast.domain.terms.settings import SETTINGS
from holdfast.errors import InvalidRequest, Problem
from holdfast.sdk.calls.context import NOT_RETRYABLE, RETRYABLE
from holdfast.sdk.calls.naming import class_name

if TYPE_CHECKING:
    from collections.abc import Sequence

Manifest: TypeAlias = dict[str, Any]
Answer: TypeAlias = Literal["retry", "fail", "hold", "ignore"]
DEFAULT_RETRIES = 3
"""The limit of ``on_exceptions`` without ``retries``: to retry for ever must be requested."""
PASSED_ON = ("PATH", "VIRTUAL_ENV", "CONDA_*", "LD_LIBRARY_PATH", "PYTHONPATH")
"""Variables of the caller that decide which programs are found and what they load, as ``holdfast run`` passes them."""
_ANSWERS = {"retry": "Retry", "fail": "Fail", "hold": "Hold", "ignore": "Ignore"}
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.]+")
_NOT_IN_A_RULE = re.compile(r"[^a-z0-9]+")
_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_LONGEST_NAME = 63


class Options(TypedDict, total=False):
    """The options of a job; the defaults are those of a manifest."""

    name: str
    queue: str
    priority: int
    gang: int
    """Runs that start, fail and restart together."""
    cpus: float
    memory: str
    """The memory of each run, such as ``2Gi``."""
    gpus: int
    env: Mapping[str, str]
    secret_env: Sequence[str] | Mapping[str, str]
    """Variables whose values are sent apart and not stored with the job: their names here, or names with values."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    group: str
    """Free text that keeps jobs together, such as ``sweeps/7``."""
    working_dir: str
    deadline: str
    """The longest time of each attempt, such as ``2h``."""
    grace: str
    """The time between the request to stop and the kill."""
    stall: Mapping[str, str]
    """How long a run may be silent: ``noOutput`` and ``noProgress``, such as ``10m``."""
    after: Sequence[Any]
    """What it waits for: jobs, or texts such as ``prep`` or ``sweep:ended``, as in a manifest's ``dependsOn``."""
    notify: Sequence[str | Mapping[str, Any]]
    """Names of notifiers, or ``{"to": ..., "on": [...]}``, as in a manifest."""
    signal: Mapping[str, str]
    """A warning ahead of the deadline: ``name`` of the signal, and how long ``before``."""
    checkpointed_exit_code: int
    """The exit code by which a run says that it has saved its work and wants to run again; 85 with ``signal``."""
    on_unknown_end: Literal["Retry", "Hold", "Fail"]
    """What happens when it is unknown how a run ended, and no rule of a policy decides."""
    logs: Literal["together", "separate"]
    """Whether stdout and stderr are one log, or one each."""
    retries: int
    """The retries after any failure, in all."""
    policies: Sequence[str]
    """Names of stored retry policies, in order."""
    retry: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    """Retry policies written in place, as in a manifest's ``retry``."""
    on_exceptions: Mapping[str | type[BaseException], Answer | Mapping[str, Any]]
    """The action after an exception, by class or name of a class, bases included; the first match decides."""


def manifest_of(command: Sequence[str] | str, options: Options) -> Manifest:
    """Build a job's manifest; a text is a line for the shell.

    Raises:
        InvalidRequest: With every option that is wrong.
    """
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    problems = [Problem(name, "is not an option of a job", allowed=tuple(Options.__annotations__)) for name in unknown]
    if "secret_env" in options:
        problems.append(Problem("secret_env", "can only be sent by submit, map and submit_array of a Client"))
    work: Manifest = {"shell": command} if isinstance(command, str) else {"command": list(command)}
    spec = {
        **work,
        "queue": options.get("queue"),
        "group": options.get("group"),
        **{setting.key: options.get(setting.option) for setting in SETTINGS},
        "env": {**passed_on(os.environ), **options.get("env", {})},
        "workingDir": options.get("working_dir") or str(Path.cwd()),
        "resources": _given(cpu=options.get("cpus"), memory=options.get("memory"), gpu=options.get("gpus")),
        "stall": dict(options.get("stall", {})),
        "signal": dict(options.get("signal", {})),
        "notify": list(options.get("notify", ())),
        "dependsOn": [_awaited(dependency) for dependency in options.get("after", ())],
        "retryPolicies": list(options.get("policies", ())),
        "retry": _inline_policies(options, problems),
    }
    metadata = _given(
        name=options.get("name"),
        labels=dict(options.get("labels", {})),
        annotations=dict(options.get("annotations", {})),
    )
    if problems:
        raise InvalidRequest(problems=problems)
    return {"apiVersion": "holdfast.dev/v1", "kind": "Job", "metadata": metadata, "spec": _given(**spec)}


def _awaited(dependency: object) -> object:
    """Name a job by its id; whatever else is given says itself what it means."""
    job_id = getattr(dependency, "id", None)
    return dependency if job_id is None else f"job/{job_id}"


def name_of(function: object) -> str:
    """Make a job's name of a function's."""
    name = getattr(function, "__name__", None) or type(function).__name__
    return _NOT_IN_A_NAME.sub("-", name).strip("-_.")[:_LONGEST_NAME].rstrip("-_.") or "call"


def passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """Choose the caller's variables that its programs need."""
    return {name: value for name, value in environ.items() if any(fnmatchcase(name, pattern) for pattern in PASSED_ON)}


def _given(**values: Any) -> Manifest:
    """Leave out values that are not set."""
    return {name: value for name, value in values.items() if value not in (None, {}, [])}


def _inline_policies(options: Options, problems: list[Problem]) -> list[Manifest]:
    """Order the policies: what a run says itself, then exceptions, then written policies, then any failure."""
    written = options.get("retry", ())
    policies = [dict(policy) for policy in ([written] if isinstance(written, Mapping) else written)]
    rules = [_rule(key, answer, problems) for key, answer in options.get("on_exceptions", {}).items()]
    retries = options.get("retries")
    if not rules and not policies and retries is None:
        return []
    limit = DEFAULT_RETRIES if retries is None else retries
    markers = [{"name": "not-retryable", "action": "Fail", "onTerminationMessage": _ends_with(NOT_RETRYABLE)}]
    if rules or retries is not None:
        markers.append({"name": "retryable", "action": "Retry", "onTerminationMessage": _ends_with(RETRYABLE)})
    first = {"name": "python", "retryLimit": limit, "defaultAction": "Fail", "rules": [*markers, *rules]}
    last = {"name": "retries", "retryLimit": retries, "defaultAction": "Retry", "rules": [_ALL]}
    return [first, *policies, *([last] if retries is not None else [])]


_ALL = {"name": "any-failure", "action": "Retry"}


def _ends_with(words: str) -> dict[str, str]:
    return {"pattern": "\\" + words.replace("]", r"\]") + r"\z"}


def _rule(key: str | type[BaseException], answer: str | Mapping[str, Any], problems: list[Problem]) -> Manifest:
    """Write the rule for a class of exceptions: it looks at the last line of a call's termination message."""
    name = key if isinstance(key, str) else class_name(key)
    where = f"on_exceptions[{name}]"
    if _CLASS.fullmatch(name) is None:
        problems.append(Problem(where, f"{name!r} is not the name of a class"))
    more = {"action": answer} if isinstance(answer, str) else dict(answer)
    action = str(more.get("action", ""))
    if action.lower() not in _ANSWERS:
        problems.append(Problem(where, f"{action!r} is not an action", allowed=tuple(_ANSWERS)))
    module = "" if "." in name else r"(?:\w+\.)*"
    pattern = rf"\n\[(?:.* )?{module}{name.replace('.', '[.]')}(?: .*)?\]\z"
    rule_name = f"on-{_NOT_IN_A_RULE.sub('-', name.lower()).strip('-')}"[:_LONGEST_NAME].rstrip("-")
    own = {"name": rule_name, "action": _ANSWERS.get(action.lower(), action)}
    return {**own, "onTerminationMessage": {"pattern": pattern}, **{k: v for k, v in more.items() if k != "action"}}
