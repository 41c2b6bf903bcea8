"""Reads and writes what is watched during a job's runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.dialects.reading import Fields, shown
from holdfast.domain.record import evolve
from holdfast.domain.suggestion import closest
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.watching import DEFAULT_SIGNAL, EarlyWarning, StallLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.errors import Problem

SHORTEST_STALL_S = 1.0
"""The shortest limit in seconds: less cannot be told apart between two looks."""
SIGNALS = ("TERM", "USR1", "USR2", "HUP", "INT", "QUIT", "XCPU", "URG", "WINCH", "PWR")
"""Signals that can be a warning."""
_CANNOT_BE_HEEDED = frozenset({"KILL", "STOP"})
_LIMITS = {"noOutput": "no_output_s", "noProgress": "no_progress_s", "idleDevice": "idle_device_s"}


def read_stall(spec: Fields, *, gpus: bool = True) -> StallLimits | None:
    """Read ``stall``: for how long a run may be silent; ``gpus`` says whether it has any."""
    part = spec.nested("stall")
    if part is None:
        return None
    limits = {attribute: _limit(part, name) for name, attribute in _LIMITS.items()}
    if part.has("idleDevice") and not gpus:
        hint = "ask for some with resources: {gpu: 1}, or use noOutput or noProgress"
        part.problem("idleDevice", "needs GPUs, and the job asks for none", hint=hint)
    part.finish()
    if not part.value:
        spec.problem("stall", "sets no limit", allowed=tuple(_LIMITS), hint="stall: {noOutput: 10m}")
    return StallLimits(**limits)


def _limit(part: Fields, name: str) -> float | None:
    value = part.duration(name)
    if value is not None and value < SHORTEST_STALL_S:
        shortest = f"{format_duration(SHORTEST_STALL_S)} or more"
        hint = "leave it out for no limit" if not value else "silence is checked once a second"
        part.problem(name, f"{format_duration(value)} is too short to be observed", allowed=(shortest,), hint=hint)
        return None
    return value


def read_warning(spec: Fields, deadlines_s: Mapping[str, float | None]) -> EarlyWarning | None:
    """Read ``signal``: the warning ahead of the end.

    Args:
        spec: The job's fields.
        deadlines_s: Limits in seconds that the warning must precede, by their fields.
    """
    part = spec.nested("signal")
    if part is None:
        return None
    name, before_s = _signal(part), part.duration("before")
    part.finish()
    if not part.has("before"):
        hint = "say how long before the end the warning comes, such as before: 2m"
        part.problem("before", "is required", hint=hint)
    elif before_s == 0:
        part.problem("before", "must be more than 0", hint="SIGTERM itself comes at the end, and then the grace begins")
    for field, deadline_s in deadlines_s.items():
        if before_s is not None and deadline_s is not None and before_s >= deadline_s:
            what = f"{format_duration(before_s)} is not less than the {field} of {format_duration(deadline_s)}"
            hint = "the run would be warned before it has begun"
            part.problem("before", what, allowed=(f"less than {format_duration(deadline_s)}",), hint=hint)
    return EarlyWarning(before_s or 0.0, name)


def _signal(part: Fields) -> str:
    written = part.text("name")
    if written is None:
        return DEFAULT_SIGNAL
    name = written.removeprefix("SIG")
    if name in _CANNOT_BE_HEEDED:
        part.problem("name", f"no program can heed {written}", allowed=SIGNALS, hint="most programs handle TERM")
    elif name not in SIGNALS:
        part.problem(
            "name", f"{shown(written)} is no signal to warn with", allowed=SIGNALS, hint=closest(name, SIGNALS)
        )
    return name


SIGNAL_ANNOTATION = "holdfast.dev/signal"
"""An annotation of a pod template: ``USR2@2m``, or ``2m`` for TERM."""
STALL_ANNOTATION = "holdfast.dev/stall"
"""An annotation of a pod template: ``noOutput=10m,noProgress=30m``."""


class WatchedPrograms(NamedTuple):
    """What is watched of the programs of pods."""

    stall: StallLimits | None
    warning: EarlyWarning | None


def read_watched(spec: Fields, deadlines_s: Mapping[str, float | None]) -> WatchedPrograms:
    """Read ``stall`` and ``signal``."""
    return WatchedPrograms(read_stall(spec), read_warning(spec, deadlines_s))


def annotated(metadata: Fields, deadlines_s: Mapping[str, float | None]) -> WatchedPrograms:
    """Read the same from the annotations of a pod template."""
    annotations_given = metadata.value.get("annotations")
    written = annotations_given if isinstance(annotations_given, dict) else {}
    parts: dict[str, Any] = {}
    if SIGNAL_ANNOTATION in written:
        name, _, before = str(written[SIGNAL_ANNOTATION]).rpartition("@")
        parts["signal"] = {"before": before, **({"name": name} if name else {})}
    if STALL_ANNOTATION in written:
        limits = [limit.partition("=") for limit in str(written[STALL_ANNOTATION]).split(",")]
        parts["stall"] = {name.strip(): value.strip() for name, _, value in limits}
    problems: list[Problem] = []
    watched = read_watched(Fields(parts, "", problems), deadlines_s)
    at = metadata.at("annotations.holdfast.dev/")
    metadata.problems += [evolve(problem, path=f"{at}{problem.path}") for problem in problems]
    return watched


def write_watching(spec: JobSpec) -> dict[str, Any]:
    """Write the watches, durations in seconds."""
    written: dict[str, Any] = {}
    if spec.stall is not None:
        limits = {name: getattr(spec.stall, attribute) for name, attribute in _LIMITS.items()}
        written["stall"] = {name: value for name, value in limits.items() if value is not None}
    if spec.warning is not None:
        written["signal"] = {"name": spec.warning.signal, "before": spec.warning.before_s}
    return written
