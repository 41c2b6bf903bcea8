"""Notifiers that are programs of this machine, which its operator allowed by their paths."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.domain.notifications.words import payload, subject
from holdfast.notify.guard import Undelivered
from holdfast.notify.webhook import encoded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.notifications.notification import Notification

_MOST_SHOWN = 200
_REAP_S = 5.0


def environment(notification: Notification, path: str) -> Mapping[str, str]:
    """Return the whole environment of a program, which has no variable of the server's."""
    report = notification.report
    texts = {
        "ID": notification.id,
        "TO": notification.to,
        "EVENT": report.event,
        "SUMMARY": subject(report),
        "KIND": report.kind,
        "SUBJECT_ID": report.id,
        "NAME": report.name,
        "STATE": report.state,
        "REASON": report.reason,
        "CAUSE": report.cause,
        "ATTEMPTS": str(report.attempts),
    }
    return {"PATH": path, **{f"HOLDFAST_NOTIFY_{name}": text.replace("\0", "?") for name, text in texts.items()}}


def run(command: Sequence[str], notification: Notification, path: str, timeout_s: float) -> None:
    """Run a program with the notification as JSON on its standard input; at its time-out its whole group is killed.

    Raises:
        Undelivered: It cannot be started, does not end in time, or ends with another code than 0.
    """
    try:
        started = subprocess.Popen(  # noqa: S603 - the operator allowed it by its path, and no shell reads it
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=dict(environment(notification, path)),
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        message = f"{command[0]} cannot be started: {error.strerror or error}"
        raise Undelivered(message) from error
    try:
        _, output = started.communicate(encoded(payload(notification.report)), timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        message = f"{command[0]} did not end within {timeout_s:g} s, and was killed"
        raise Undelivered(message) from error
    finally:
        _end(started)
    if started.returncode != 0:
        shown = " ".join(output.decode("utf-8", "replace").split())[-_MOST_SHOWN:]
        how = f"exit code {started.returncode}" if started.returncode > 0 else f"signal {-started.returncode}"
        msg = f"{command[0]} ended with {how}{f': {shown}' if shown else ''}"
        raise Undelivered(msg)


def _end(started: subprocess.Popen[bytes]) -> None:
    """Kill the program and all that is left in its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(started.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        started.wait(_REAP_S)
    for stream in (started.stdin, started.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()
