"""Checks of the machine itself: Python, user, clock, GPUs."""

from __future__ import annotations

import ctypes
import getpass
import os
import platform
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.app import running
from holdfast.app.doctor.finding import Finding, fail, ok, warn
from holdfast.engines.devices.finding import find_devices

if TYPE_CHECKING:
    from holdfast.app.settings import Settings

_NEWER_THAN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""When this program was not written yet."""
_AHEAD_S = 60.0
_TIMEX_BYTES = 512
"""More than the kernel writes."""
_STATUS_AT = 5 * ctypes.sizeof(ctypes.c_long)
_UNSYNCHRONISED = 0x40


def python(_: Settings) -> Finding:
    """Say what runs this, and whether the system is one that programs can be held on."""
    found = f"{platform.python_version()} ({sys.executable}), holdfast {__version__} on {platform.system()}"
    if sys.platform != "linux":
        return warn(found, "Holdfast is made for Linux: elsewhere there are no control groups, and programs escape")
    return ok(found)


def user(_: Settings) -> Finding:
    """Say who programs run as."""
    if os.geteuid() == 0:
        return warn("root: programs would run as root", "run Holdfast as a dedicated user")
    with suppress(KeyError, OSError):
        return ok(getpass.getuser())
    return ok(f"user number {os.geteuid()}")


def clock(settings: Settings) -> Finding:
    """Look whether the clock can be right: retries, deadlines and retention go by it."""
    now = time.time()
    shown = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    advice = "set it, and keep it right with a time service: timedatectl set-ntp true"
    if now < _NEWER_THAN:
        return fail(f"{shown} is in the past", advice)
    with suppress(OSError):
        ahead_s = (settings.data / "holdfast.db").stat().st_mtime - now
        if ahead_s > _AHEAD_S:
            return warn(f"{shown}, but the database was written {ahead_s:.0f} s later than that", advice)
    synchronised = _synchronised()
    if synchronised is None:
        return ok(f"{shown}; cannot tell whether it is synchronised")
    return ok(f"{shown}, synchronised") if synchronised else warn(f"{shown}, not synchronised", advice)


def _synchronised() -> bool | None:
    """Ask the kernel whether a time service keeps its clock; ``None``: it does not tell."""
    with suppress(OSError, AttributeError):
        timex = ctypes.create_string_buffer(_TIMEX_BYTES)
        if ctypes.CDLL(None, use_errno=True).adjtimex(timex) >= 0:
            status = ctypes.c_int.from_buffer(timex, _STATUS_AT).value
            return not status & _UNSYNCHRONISED
    return None


def gpus(settings: Settings) -> Finding:
    """Compare the GPUs there are with those that are handed out."""
    found, offered = find_devices(), running.devices(settings)
    there = f"{len(found)} found, {len(offered)} handed out"
    if settings.devices is None and len(offered) > len(found):
        return warn(there, "jobs would get devices that do not exist: HOLDFAST_GPUS")
    if len(found) > len(offered):
        return warn(there, f"to hand out all: HOLDFAST_GPUS={len(found)}, or leave it out")
    bad = [f"{device.id}: {device.trouble}" for device in offered if device.trouble]
    return warn(there, "; ".join(bad)) if bad else ok(there)
