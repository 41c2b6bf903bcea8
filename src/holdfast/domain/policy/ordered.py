"""What all rule engines here share: rules are tried in order, the first match decides, and each rule says why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from holdfast.domain.policy.model import Considered

if TYPE_CHECKING:
    from collections.abc import Iterable

S_contra = TypeVar("S_contra", contravariant=True)
S = TypeVar("S")


class Matcher(Protocol[S_contra]):
    """One thing a rule looks at in a subject."""

    def holds(self, subject: S_contra, /) -> bool:
        """Whether it matches."""
        ...

    def because(self, subject: S_contra, /) -> str:
        """Say why it does or does not."""
        ...


def matches(matchers: Iterable[Matcher[S]], subject: S) -> bool:
    """Whether all matchers of a rule hold; a rule without any matches everything."""
    for matcher in matchers:  # noqa: SIM110 - all() over a generator takes twice as long, on the hottest path
        if not matcher.holds(subject):
            return False
    return True


def considered(policy: str, rule: str, matchers: Iterable[Matcher[S]], subject: S) -> Considered:
    """Say whether a rule matches, and why: all matchers that hold, or all that do not."""
    listed = tuple(matchers)
    matched = matches(listed, subject)
    reasons = [matcher.because(subject) for matcher in listed if matcher.holds(subject) is matched]
    return Considered(policy, rule, matched, "; ".join(reasons) or "the rule matches every failure")
