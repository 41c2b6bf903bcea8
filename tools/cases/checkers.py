"""Finds the checker of a case by what the case looks like."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.cases import armada_engine, armada_facts, armada_input, backendai, jobset
from tools.cases.results import Skip

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
}
_LATER_ARMADA = {
    "scheduler": "Armada's scheduler events belong to part E (Armada's front door), not built yet",
    "storage": "Armada's policy CRUD belongs to part E (Armada's front door), not built yet",
    "executor": "Armada's executor belongs to part E (Armada's front door), not built yet",
    "cache": "Armada's policy cache belongs to part E (Armada's front door), not built yet",
    "e2e": "Armada job files belong to part E (Armada's front door), not built yet",
}
_SESSION_CASE = re.compile(r"[A-Z]{2}-\d+")


def check(case: Case) -> list[Mismatch]:
    """Check one case.

    Raises:
        Skip: It cannot be checked; the message says why.
    """
    return _checker(case)(case)


def _checker(case: Case) -> Callable[[Case], list[Mismatch]]:
    if "jobset" in case:
        return jobset.check
    if "kind" in case and {"policy", "expect"} <= case.keys():
        return _armada_checker(str(case["kind"]))
    if {"given", "when", "expect"} <= case.keys() and isinstance(case["given"], str):
        if str(case.get("id", "")).startswith("FL-"):
            msg = "Fluster's jobs belong to part G (Fluster's front door), not built yet"
            raise Skip(msg)
        if _SESSION_CASE.fullmatch(str(case.get("id", ""))):
            return backendai.check
    if str(case.get("id", "")).startswith("FL-"):
        msg = "Fluster's jobs belong to part G (Fluster's front door), not built yet"
        raise Skip(msg)
    msg = "no checker knows cases of this form"
    raise Skip(msg)


def _armada_checker(kind: str) -> Callable[[Case], list[Mismatch]]:
    if kind in _LATER_ARMADA:
        raise Skip(_LATER_ARMADA[kind])
    if kind not in _ARMADA:
        msg = f"no checker knows the kind {kind!r}"
        raise Skip(msg)
    return _ARMADA[kind]
