"""Reads the parts that policies and failure categories share: exit codes, conditions, patterns, signals."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from holdfast.dialects.reading import LONGEST_NAME, shown
from holdfast.domain.failure import FailureCondition
from holdfast.domain.policy.model import ContainerScope, ExitCodeOperator, ExitCodes
from holdfast.domain.suggestion import closest
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.dialects.reading import Fields

MAIN = "main"
"""The name of the only program of a job without pods, where containers have names."""
MOST_EXIT_CODES = 10_000
MOST_NAMES = 1000
LOWEST_EXIT_CODE, HIGHEST_EXIT_CODE = -(2**31), 2**31 - 1
"""The operators that can be written, as in Kubernetes."""
_HIGHEST_OF_PROGRAMS = 255
HIGHEST_SIGNAL = 64
_MOST_NAMED = 5
OF_WHOLE_RUNS = frozenset(
    {
        FailureCondition.EVICTED.value,
        FailureCondition.PREEMPTED.value,
        FailureCondition.UNSCHEDULABLE.value,
        FailureCondition.NODE_LOST.value,
        FailureCondition.EXECUTOR_LOST.value,
        FailureCondition.END_UNKNOWN.value,
    }
)
"""Conditions of a whole run that no container has by itself."""


def read_exit_codes(fields: Fields, *, scope: ContainerScope = ContainerScope.FIRST_FAILED) -> ExitCodes | None:
    """Read ``onExitCodes: {operator, values}``."""
    part = fields.nested("onExitCodes")
    if part is None:
        return None
    operator = part.choice("operator", ExitCodeOperator, required=True)
    values = part.items("values", most=MOST_EXIT_CODES)
    if not values:
        part.problem("values", "must name at least one exit code")
    codes = read_codes(part, values or [])
    part.finish()
    return None if operator is None or not codes else ExitCodes(operator, codes, scope)


def read_codes(part: Fields, values: list[object]) -> frozenset[int]:
    """Read a list of exit codes; codes that no failed program has are accepted with a warning."""
    codes = set()
    for i, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int):
            part.mistyped(f"values[{i}]", value, "a whole number")
        elif not LOWEST_EXIT_CODE <= value <= HIGHEST_EXIT_CODE:
            part.problem(f"values[{i}]", f"{value} is not an exit code", hint="exit codes run from 1 to 255")
        else:
            codes.add(value)
    return frozenset(codes)


def never_matched(
    codes: ExitCodes | None, container: str | None, where: str, conditions: frozenset[str] | None = None
) -> Iterator[Problem]:
    """List the codes and signals of a rule that no failure has; ``where`` is the rule's path."""
    named = codes.values if codes is not None and codes.operator is ExitCodeOperator.IN else frozenset()
    if 0 in named:
        message = "0 never matches: a program that exits with 0 has not failed"
        yield Problem(f"{where}.onExitCodes.values", message, hint="leave it out")
    beyond = sorted(code for code in named if not 0 <= code <= _HIGHEST_OF_PROGRAMS)
    if beyond:
        listed = ", ".join(map(str, beyond[:_MOST_NAMED]))
        message = f"{listed} never match{'es' if len(beyond) == 1 else ''}: programs exit with 0 to 255"
        hint = "a signal's number has a field of its own, onSignals"
        yield Problem(f"{where}.onExitCodes.values", message, hint=hint)
    if container is not None and conditions and conditions <= OF_WHOLE_RUNS:
        message = f"{', '.join(sorted(conditions))} never holds for a container: it is true of a whole run"
        yield Problem(f"{where}.containerName", message, hint="leave it out")
        return
    if container not in {None, MAIN}:
        message = f"only pods have a container {container!r}: the program of any other job is {MAIN!r}"
        yield Problem(f"{where}.containerName", message, hint=f"leave it out, or write {MAIN}")


def read_conditions(fields: Fields, *, aliases: Mapping[str, str] | None = None) -> frozenset[str] | None:
    """Read ``onConditions``; unknown names are problems that list the known ones."""
    names = fields.texts("onConditions", most=MOST_NAMES)
    if names is None:
        return None
    allowed = [condition.value for condition in FailureCondition]
    conditions = set()
    for i, name in enumerate(names):
        full_name = (aliases or {}).get(name, name)
        if full_name in allowed:
            conditions.add(full_name)
        else:
            hint = closest(name, allowed)
            fields.problem(f"onConditions[{i}]", f"unknown condition {shown(name)}", allowed=allowed, hint=hint)
    if not names:
        fields.problem("onConditions", "must name at least one condition", allowed=allowed)
    return frozenset(conditions) or None


def read_pattern(fields: Fields, name: str) -> str | None:
    """Read ``<name>: {pattern}``."""
    part = fields.nested(name)
    if part is None:
        return None
    pattern = part.pattern("pattern")
    part.finish()
    return pattern


def read_names(fields: Fields, name: str) -> frozenset[str] | None:
    """Read one name or a list of names."""
    value = fields.raw(name)
    if value is None:
        return None
    if isinstance(value, str):
        good = fields.check_text(name, value, longest=LONGEST_NAME) and _filled(fields, name, value)
        return frozenset({value}) if good else None
    names = fields.texts(name, most=MOST_NAMES, longest=LONGEST_NAME)
    if names is None:
        return None
    if not names and not value:
        fields.problem(name, "must name at least one")
    return frozenset(n for i, n in enumerate(names) if _filled(fields, f"{name}[{i}]", n)) or None


def _filled(fields: Fields, name: str, value: str) -> bool:
    if not value:
        fields.problem(name, "must not be empty")
    return bool(value)


def read_signals(fields: Fields) -> frozenset[int] | None:
    """Read ``onSignals``: numbers, or names with or without ``SIG``."""
    values = fields.items("onSignals", most=HIGHEST_SIGNAL)
    if values is None:
        return None
    if not values:
        fields.problem("onSignals", "must name at least one signal")
    numbers = set()
    for i, value in enumerate(values):
        number = _signal_number(value)
        if number is None:
            message = f"{shown(value)} is not a signal"
            fields.problem(f"onSignals[{i}]", message, allowed=("SIGTERM", "SIGKILL", "1 to 64"))
        else:
            numbers.add(number)
    return frozenset(numbers) or None


def _signal_number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 1 <= value <= HIGHEST_SIGNAL else None
    if not isinstance(value, str):
        return None
    name = value.upper()
    name = name if name.startswith("SIG") else f"SIG{name}"
    number = signal.Signals.__members__.get(name)
    return None if number is None else int(number)


def write_signal(number: int) -> str | int:
    """Write a signal by name if it has one."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return number


def write_exit_codes(codes: ExitCodes) -> dict[str, object]:
    """Write exit codes as they are read."""
    return {"operator": codes.operator.value, "values": sorted(codes.values)}
