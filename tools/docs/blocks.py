"""The generated parts of the documentation, by name; each is written from the code it documents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.failure import Cause, EndedBy, FailureCondition
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, AntiAffinity, ExitCodeOperator, JitterMode, SetAction
from holdfast.domain.terms.states import JobSetPhase, JobState
from holdfast.domain.workloads.jobset.model import DependencyStatus, RestartStrategy
from holdfast.domain.workloads.kubejob.model import PodAction
from tools.docs import access, commands, configuration, events, http, lifecycle, policies
from tools.docs.source import enum_table

if TYPE_CHECKING:
    from collections.abc import Callable


BLOCKS: dict[str, Callable[[], str]] = {
    "lifecycle-figure": lifecycle.figure,
    "lifecycle-handlers": lifecycle.handlers,
    "lifecycle-promotions": lifecycle.promotions,
    "lifecycle-requests": lifecycle.requests,
    "lifecycle-pod-moves": lifecycle.pod_moves,
    "job-states": partial(enum_table, JobState, title="State"),
    "job-set-states": partial(enum_table, JobSetPhase, title="State"),
    "actions": partial(enum_table, Action, title="Action"),
    "conditions": partial(enum_table, FailureCondition, title="Condition", meaning="When it holds"),
    "causes": partial(enum_table, Cause, title="Cause"),
    "ended-by": partial(enum_table, EndedBy, title="Ended by"),
    "decision-codes": partial(enum_table, DecisionCode, title="Code"),
    "jitter": partial(enum_table, JitterMode, title="Jitter"),
    "anti-affinity": partial(enum_table, AntiAffinity, title="Mode"),
    "exit-code-operators": partial(enum_table, ExitCodeOperator, title="Operator"),
    "set-actions": partial(enum_table, SetAction, title="Action"),
    "restart-strategies": partial(enum_table, RestartStrategy, title="Strategy"),
    "dependency-statuses": partial(enum_table, DependencyStatus, title="Status", meaning="It waits until"),
    "pod-actions": partial(enum_table, PodAction, title="Action"),
    "rights": access.rights,
    "built-in-policy": policies.built_in,
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
