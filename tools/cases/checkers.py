"""Finds the checker of a case by what the case looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.cases import (
    armada_catalogue,
    armada_engine,
    armada_facts,
    armada_input,
    armada_scheduler,
    jobset,
)
from tools.cases.deviations import deviation_of
from tools.cases.results import Deviates, Skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.cases.results import Case, Mismatch

_ARMADA: dict[str, Callable[[Case], list[Mismatch]]] = {
    "engine": armada_engine.check_engine,
    "design": armada_engine.check_design,
    "matcher": armada_facts.check_matcher,
    "classifier": armada_facts.check_classifier,
    "counter": armada_facts.check_counter,
    "mutation": armada_facts.check_mutation,
    "validation": armada_input.check_validation,
    "cli": armada_input.check_file,
    "scheduler": armada_scheduler.check_scheduler,
    "storage": armada_catalogue.check_storage,
    "cache": armada_catalogue.check_cache,
}
_ON_PROGRAMS = "is about real programs: tests/e2e/test_armada_door.py"


def check(case: Case) -> list[Mismatch]:
    """Check one case.

    Raises:
        Skip: It cannot be checked; the message says why.
        Deviates: It comes out differently on purpose; the message says why.
    """
    return _checker(case)(case)


def _checker(case: Case) -> Callable[[Case], list[Mismatch]]:
    if "jobset" in case:
        return jobset.check
    if "kind" in case and {"policy", "expect"} <= case.keys():
        return _armada
    msg = "no checker knows cases of this form"
    raise Skip(msg)


def _armada(case: Case) -> list[Mismatch]:
    """Check a case of Armada's; one that comes out differently is different on purpose where the table says so."""
    deviation, kind = deviation_of(case), str(case["kind"])
    try:
        mismatches = _of_kind(kind)(case)
    except Skip:
        if deviation is None:
            raise
        mismatches = None
    if mismatches is None or (mismatches and deviation is not None):
        raise Deviates(deviation.reason if deviation is not None else "")
    return mismatches


def _of_kind(kind: str) -> Callable[[Case], list[Mismatch]]:
    if kind == "e2e":
        raise Skip(_ON_PROGRAMS)
    if kind not in _ARMADA:
        msg = f"no checker knows the kind {kind!r}"
        raise Skip(msg)
    return _ARMADA[kind]
