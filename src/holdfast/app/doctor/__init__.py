"""Looks whether this machine is fit to run jobs, changes nothing, and says what to do about what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app.doctor import machine, place, server
from holdfast.app.doctor.finding import Finding, Verdict
from holdfast.app.settings import read_settings
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.app.settings import Settings

_CHECKS: tuple[tuple[str, Callable[[Settings], Finding]], ...] = (
    ("python", machine.python),
    ("user", machine.user),
    ("clock", machine.clock),
    ("gpus", machine.gpus),
    ("memory limits", machine.memory),
    ("processes", machine.processes),
    ("open files", machine.open_files),
    ("data directory", place.directory),
    ("file system", place.file_system),
    ("disk", place.disk),
    ("database", server.database),
    ("server", server.server),
    ("catalogue", server.catalogue),
)


def examine() -> Sequence[Finding]:
    """Carry out every check; one that fails itself is a finding, too.

    Raises:
        InvalidSetting: The settings cannot be read.
    """
    settings = read_settings()
    return [_found(name, check, settings) for name, check in _CHECKS]


def _found(name: str, check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings).named(name)
    except HoldfastError as error:
        return Finding(Verdict.FAIL, error.message, error.hint or "").named(name)
    except OSError as error:
        return Finding(Verdict.WARN, f"cannot be looked at: {error}").named(name)
