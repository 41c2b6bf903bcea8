"""Codes of the checks that decide about a failure; they are stable."""

from __future__ import annotations

from enum import StrEnum


class DecisionCode(StrEnum):
    """Which check decided; upstream Armada's names where it has one."""

    NO_ERROR = "no_error"
    """There was no failure to judge."""
    NEVER_RETRIED = "fail_never_retried"
    """The cause is one that no policy can retry."""
    GLOBAL_LIMIT = "fail_global_limit"
    """``globalMaxRetries`` is 0, the kill switch, or the job has been granted that many retries already."""
    FAIL_RULE = "fail_rule"
    """A rule with action ``Fail`` matched."""
    FAIL_DEFAULT = "fail_default"
    """No rule matched, and the default action is ``Fail``."""
    POLICY_LIMIT = "fail_policy_limit"
    """The rule's effective limit is used up, whether it came from the rule or its policy."""
    HOLD = "hold"
    """A rule with action ``Hold`` matched."""
    SUSPECTED = "hold_suspected"
    """The job was running at loss after loss of a node, and each loss took other jobs down too."""
    IGNORE = "ignore"
    """A rule with action ``Ignore`` matched: the job is retried, uncounted."""
    RETRY = "retry"
    """A retry was granted and counted."""
    UNSCHEDULABLE = "retry_unschedulable"
    """A retry was granted, but the job has grown too large for every node, or was tried on every node that could
    take it."""
    INTERRUPTED = "interrupted"
    """The job was held while running, or its node is being drained and no rule names `Evicted`: nothing is counted."""
    SHORTAGE = "shortage"
    """Its node was short of something that starting a program takes: no rule applies, and nothing is counted."""
    TOTAL_DEADLINE = "fail_total_deadline"
    """The job's total deadline expired, or a granted retry could only start after it."""
