"""What a check of the machine found."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.record import Struct, evolve


class Verdict(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    """Jobs run, but with less protection, or not for long."""
    FAIL = "fail"
    """Jobs do not run, or results may be lost."""


class Finding(Struct, frozen=True):
    """The result of one check."""

    verdict: Verdict
    detail: str
    advice: str = ""
    """What to do about it; empty where nothing needs doing."""
    name: str = ""

    def named(self, name: str) -> Finding:
        """Return it with the name of its check."""
        return evolve(self, name=name)


def ok(detail: str) -> Finding:
    """Find nothing wrong."""
    return Finding(Verdict.OK, detail)


def warn(detail: str, advice: str) -> Finding:
    """Find something to know."""
    return Finding(Verdict.WARN, detail, advice)


def fail(detail: str, advice: str) -> Finding:
    """Find something to mend."""
    return Finding(Verdict.FAIL, detail, advice)
