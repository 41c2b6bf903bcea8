"""The generated parts of the documentation, by name; each is written from the code it documents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.failure import Cause, EndedBy, FailureCondition
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, AntiAffinity, JitterMode, SetAction
from holdfast.domain.sessions.policy import RetryEligibleCause
from holdfast.domain.terms.states import JobSetPhase, JobState
from holdfast.domain.workloads.jobset.model import DependencyStatus, RestartStrategy
from holdfast.domain.workloads.kubejob.model import PodAction
from tools.docs import access, commands, configuration, events, http, lifecycle, policies
from tools.docs.source import enum_list

if TYPE_CHECKING:
    from collections.abc import Callable


BLOCKS: dict[str, Callable[[], str]] = {
    "lifecycle-figure": lifecycle.figure,
    "lifecycle-handlers": lifecycle.handlers,
    "lifecycle-run-moves": lifecycle.run_moves,
    "lifecycle-promotions": lifecycle.promotions,
    "lifecycle-requests": lifecycle.requests,
    "lifecycle-pod-moves": lifecycle.pod_moves,
    "job-states": partial(enum_list, JobState),
    "job-set-states": partial(enum_list, JobSetPhase),
    "actions": partial(enum_list, Action),
    "conditions": partial(enum_list, FailureCondition),
    "causes": partial(enum_list, Cause),
    "ended-by": partial(enum_list, EndedBy),
    "decision-codes": partial(enum_list, DecisionCode),
    "jitter": partial(enum_list, JitterMode),
    "anti-affinity": partial(enum_list, AntiAffinity),
    "set-actions": partial(enum_list, SetAction),
    "restart-strategies": partial(enum_list, RestartStrategy),
    "dependency-statuses": partial(enum_list, DependencyStatus),
    "pod-actions": partial(enum_list, PodAction),
    "rights": access.rights,
    "built-in-policy": policies.built_in,
    "session-retry-policy": policies.session_fields,
    "session-retry-delays": policies.session_delays,
    "session-retry-causes": partial(enum_list, RetryEligibleCause),
    "failure-catalogue": policies.failure_catalogue,
    "events": events.registry,
    "audit-actions": events.acts,
    "errors": http.errors,
    "endpoints": http.endpoints,
    "metrics": http.metrics,
    "commands": commands.reference,
    "shared-options": commands.shared_options,
    "exit-codes": commands.exit_code_table,
    "nouns": commands.nouns,
    "settings": configuration.settings,
}
