"""Reads and writes the plain settings of a job by their descriptions."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from holdfast.domain.terms.settings import SETTINGS, Setting, Whole, Word
from holdfast.domain.workloads.spec import JobSpec

if TYPE_CHECKING:
    from holdfast.dialects.reading import Fields

_DEFAULTS = JobSpec(name="", command=())


def read_settings(spec: Fields) -> dict[str, Any]:
    """Read the settings that are there, by their attributes."""
    values = {setting.attribute: _read(spec, setting) for setting in SETTINGS}
    return {attribute: value for attribute, value in values.items() if value is not None}


def _read(spec: Fields, setting: Setting) -> object:
    key, values = setting.key, setting.values
    if isinstance(values, Whole):
        return spec.integer(key, low=values.low, high=values.high)
    if isinstance(values, Word):
        return spec.choice(key, values.options)
    duration_s = spec.duration(key)
    if duration_s == 0 and not values.may_be_zero:
        spec.problem(key, "must be more than 0", hint="leave it out for no limit")
    return duration_s


def write_settings(spec: JobSpec) -> dict[str, Any]:
    """Write the settings that differ from their defaults."""
    written: dict[str, Any] = {}
    for setting in SETTINGS:
        value = getattr(spec, setting.attribute)
        if value != getattr(_DEFAULTS, setting.attribute):
            written[setting.key] = value.value if isinstance(value, StrEnum) else value
    return written
