"""Retry policies: rules, limits, back-off, anti-affinity and mutations.

Every dialect compiles into this: Armada's issue #4683, shipped Armada's categories and mutations, JobSet and
Kubernetes rules, Backend.AI's causes.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the codec of what is stored looks it up
from enum import StrEnum
from typing import Any

from holdfast.domain.lifecycle.engine import HandlerLimits  # noqa: TC001 - the codec of what is stored looks it up
from holdfast.domain.policy.codes import DecisionCode  # noqa: TC001 - as above
from holdfast.domain.record import Struct, field
from holdfast.domain.terms.settings import UnknownEnd  # noqa: TC001 - as above


class Action(StrEnum):
    """What a rule tells Holdfast to do."""

    RETRY = "Retry"
    """A new attempt, counted against the rule's limit and the global one."""
    FAIL = "Fail"
    """Give up immediately."""
    IGNORE = "Ignore"
    """A new attempt that counts against no limit."""
    HOLD = "Hold"
    """Wait for a user."""


class SetAction(StrEnum):
    """What a rule of a job set does about a failed job (KEP-262)."""

    FAIL_JOB_SET = "FailJobSet"
    """Fail the set immediately, whatever ``maxRestarts`` says."""
    RESTART_JOB_SET = "RestartJobSet"
    """Restart every job, including finished ones; counted."""
    RESTART_JOB_SET_UNCOUNTED = "RestartJobSetAndIgnoreMaxRestarts"
    """Restart every job, without counting it."""
    RESTART_JOB = "RestartJob"
    """Restart only that job; counted."""
    RESTART_JOB_UNCOUNTED = "RestartJobAndIgnoreMaxRestarts"
    """Restart only that job, without counting it."""
    RESTART_GROUP = "RestartReplicatedJob"
    """Restart every job of its replicated job; counted."""
    RESTART_GROUP_UNCOUNTED = "RestartReplicatedJobAndIgnoreMaxRestarts"
    """Restart every job of its replicated job, without counting it."""
    FAIL_JOB = "FailJob"
    """Leave that job failed; the others continue."""


class ExitCodeOperator(StrEnum):
    """How an exit code is compared with ``values``."""

    IN = "In"
    """The exit code is one of ``values``."""
    NOT_IN = "NotIn"
    """The exit code is not one of ``values``, and not 0."""


class ContainerScope(StrEnum):
    """Which failed containers an exit-code rule without ``containerName`` considers."""

    FIRST_FAILED = "first"
    """Armada's document: the first failed container."""
    ANY_FAILED = "any"
    """Kubernetes ``onExitCodes`` and shipped Armada's classifier: any failed container."""


class ExitCodes(Struct, frozen=True):
    """Matches a container's exit code; code 0 never matches, even with ``NotIn``."""

    operator: ExitCodeOperator
    values: frozenset[int]
    scope: ContainerScope = ContainerScope.FIRST_FAILED


class JitterMode(StrEnum):
    """How a delay is jittered (Backend.AI BEP)."""

    NONE = "none"
    """No jitter."""
    DETERMINISTIC = "deterministic"
    """Derived from the SHA-1 of the job's or session's id and the retry's number: the same everywhere, every time."""
    RANDOM = "random"
    """Random: different every time."""


class Backoff(Struct, frozen=True):
    """Delay before a retry: ``min(initial * multiplier^(n-1), max)``, then jitter, capped by max again.

    ``n`` is the deciding rule's count including this failure. ``initial_s = 0`` is no delay.
    Where the maximum leaves no room for the jitter, what it is added to is shortened, but not for a session.
    """

    initial_s: float = 0.0
    max_s: float | None = 600.0
    multiplier: float = 2.0
    jitter: JitterMode = JitterMode.NONE
    jitter_ratio: float = 0.25
    of_session: bool = False
    """Whether it is Backend.AI's: seeded with ``n - 1``, and without jitter where the delay reaches the maximum."""


class AntiAffinity(StrEnum):
    """What the next attempt avoids."""

    NONE = "none"
    """Nothing: any node and any GPU may be used."""
    NODE = "node"
    """The node of the last failed run; dropped if no other node could ever hold the job."""
    DEVICE = "device"
    """The GPUs of the last failed run, not their node; dropped if no other GPUs could ever run it."""


class MemoryGrowth(Struct, frozen=True):
    """How the memory request grows for the next attempt; exactly one of ``factor`` and ``static`` is set."""

    factor: float | None = None
    """Greater than 1."""
    static: int | None = None
    """Bytes to add."""
    max: int | None = None
    """Bytes the request never grows beyond; a request already larger is left as it is."""


class Mutation(Struct, frozen=True):
    """What changes for the next attempt."""

    memory: MemoryGrowth | None = None
    avoid_same_node: bool = False
    """Armada's ``mutate.affinity.avoidSameNode``: avoid every node it was tried on, or fail without another.
    ``antiAffinity: node`` avoids only the last one, and is dropped if no other would do."""


class Rule(Struct, frozen=True):
    """One rule; every matcher that is set must hold, and a rule with none set matches every failure."""

    action: Action
    name: str = ""
    """Counters follow the name; a rule without one is named by its content, see ``identity``."""
    exit_codes: ExitCodes | None = None
    conditions: frozenset[str] | None = None
    """Any of these."""
    termination_message: str | None = None
    """RE2, searched unanchored in the messages of failed containers; an empty message never matches."""
    log: str | None = None
    """RE2, searched in the last 64 KiB the run printed; ``^`` and ``$`` match at the lines' ends."""
    categories: frozenset[str] | None = None
    subcategories: frozenset[str] | None = None
    causes: frozenset[str] | None = None
    signals: frozenset[int] | None = None
    container_name: str | None = None
    include_init_containers: bool = False
    ran_shorter_than_s: float | None = None
    ran_longer_than_s: float | None = None
    retry_limit: int | None = None
    """Absent inherits from the policy; 0 means never."""
    backoff: Backoff | None = None
    anti_affinity: AntiAffinity | None = None
    mutate: Mutation | None = None
    hold_reason: str = ""
    """Shown to the person a ``Hold`` waits for; for a built-in rule also why it gives up."""

    @property
    def matches_all(self) -> bool:
        """Whether it has no matcher."""
        return self == Rule(
            action=self.action,
            name=self.name,
            include_init_containers=self.include_init_containers,
            retry_limit=self.retry_limit,
            backoff=self.backoff,
            anti_affinity=self.anti_affinity,
            mutate=self.mutate,
            hold_reason=self.hold_reason,
        )


class SetRule(Struct, frozen=True):
    """One rule of a job set; every matcher that is set must hold, and a rule with none set matches every failed job."""

    action: SetAction
    name: str
    """Counters and condition reasons follow it."""
    reasons: frozenset[str] = frozenset()
    """Reasons of the job's failure, any of which matches; empty matches all."""
    messages: tuple[str, ...] = ()
    """RE2, any of which is found in the job's failure message; empty matches all."""
    replicated_jobs: frozenset[str] = frozenset()
    """The job belongs to one of these; empty matches all."""
    limit: int | None = None
    """Restarts by this rule, beyond the set's own budget; ``None`` is no limit, 0 means never."""
    backoff: Backoff | None = None
    """Delay before the restart; ``None`` inherits the set's."""


class RetryPolicy(Struct, frozen=True):
    """An ordered list of rules with defaults."""

    name: str
    rules: tuple[Rule, ...] = ()
    retry_limit: int | None = None
    """The limit of the default action and of each rule without its own; absent inherits the global cap."""
    default_action: Action = Action.FAIL
    backoff: Backoff | None = None
    anti_affinity: AntiAffinity = AntiAffinity.NONE
    revision: int = 1
    """Which stored version this is; a decision records it."""
    on_unknown_end: UnknownEnd | None = None
    """What happens when the end of a run is unknown; absent leaves it to the next policy."""


class BuiltIn(StrEnum):
    """How much of the built-in policy applies to jobs submitted natively, not by the door of another system."""

    ALL = "all"
    LOST_ONLY = "lost-only"
    """Only runs that were lost or never started are retried, three times."""
    NONE = "none"


class RetryDefaults(Struct, frozen=True):
    """Defaults for jobs of Fluster's door (its document, "Global Defaults")."""

    max_retries_failure: int = 0
    max_retries_preemption: int = 100
    retry_delay_ms: int = 1000


class RetrySettings(Struct, frozen=True):
    """The operator's settings for all jobs; read again for each decision."""

    global_max_retries: int | None = None
    """Cap on retries granted to one job over all rules; 0 is the kill switch, ``None`` is no cap."""
    default_backoff: Backoff = Backoff(initial_s=1.0, max_s=600.0, multiplier=2.0)
    handler_limits: HandlerLimits = field(default_factory=dict)
    """Limits of the lifecycle's handlers, where they differ from the tables."""
    resources: tuple[tuple[str, int], ...] = ()
    """Named resources of the whole cluster, in thousandths; what nodes have of them does not count."""
    retry_share: float = 0.5
    """Most of the capacity that goes to retries while new jobs of their queue and priority wait; 0 to 1."""
    builtin: BuiltIn = BuiltIn.ALL
    fluster: RetryDefaults = RetryDefaults()
    """Read at each launch; a job keeps those it was submitted with."""
    session_retry_default: Mapping[str, Any] = field(default_factory=dict)
    """The fields that it sets of every session's retry policy; its queue and its domain can replace them."""
    session_retries: bool = True
    """Whether failed sessions are retried; read when the first session of a chain is enqueued."""


class RetryHistory(Struct, frozen=True):
    """What a decision needs to know about a job's past; counts are of retries granted before this failure."""

    seed: str
    """Seeds deterministic jitter: the id of the job or pod, or of the session that failed."""
    attempt: int = 1
    """Number of the attempt that failed, from 1."""
    counters: tuple[tuple[str, int], ...] = ()
    """``("<policy>/<rule>", count)``; the default action of a policy counts as ``<policy>/default``."""
    total: int = 0
    """All counted retries granted to the job."""
    memory: int = 0
    """The attempt's memory request in bytes, before any growth."""
    refusals: int = 0
    """How often in a row its node was too short of something to start it, including this time."""
    tried: tuple[str, ...] = ()
    """Every node on which it was tried, in order."""


class LimitUse(Struct, frozen=True):
    """One limit that was checked."""

    name: str
    """``globalMaxRetries``, ``<policy>/<rule>``."""
    used: int
    limit: int | None
    """``None``: unlimited."""


class Considered(Struct, frozen=True):
    """One rule that was considered."""

    policy: str
    rule: str
    matched: bool
    because: str
    """Why it did or did not match, in words with the values compared."""


class Decision(Struct, frozen=True):
    """What was decided about one failure and why; complete except for its explanation, which is rebuilt on demand."""

    action: Action
    code: DecisionCode
    reason: str
    policy: str | None = None
    rule: str | None = None
    """The rule's name, or ``default`` when no rule matched."""
    rule_index: int | None = None
    policy_revision: int | None = None
    counter: str | None = None
    """The counter that a granted retry increments; ``None`` if it is not counted."""
    delay_s: float = 0.0
    delay_because: str = ""
    """How the delay was computed, in words; rebuilt on demand like ``considered``."""
    avoid_node: str | None = None
    avoid_devices: tuple[str, ...] = ()
    """``<id>@<node>`` of each GPU the next attempt avoids."""
    avoid_nodes: tuple[str, ...] = ()
    """The nodes the next attempt must not use, because it was tried there."""
    memory: int | None = None
    """The next attempt's memory request in bytes, when it changes."""
    limits: tuple[LimitUse, ...] = ()
    considered: tuple[Considered, ...] = ()

    @property
    def grants_retry(self) -> bool:
        """Whether another attempt follows automatically."""
        return self.action in {Action.RETRY, Action.IGNORE}
