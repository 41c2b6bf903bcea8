"""The directory through which calls and their outcomes travel: only its owner may look into it."""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
import stat
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidRequest, Unavailable
from holdfast.sdk.calls import worker
from holdfast.sdk.calls.outcome import CallOutcome, TooLarge, read_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

ANNOTATION = "holdfast.dev/call"
"""The annotation of a job that is a call; its value names the call's folder."""
MAX_BYTES = 256 << 20
"""The largest size of a call or its result, by default."""
_KEEP_S = 86_400.0
"""How long the folder of an unknown call is kept: it may be about to be submitted."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_ID_BYTES = 12


class CallFolder:
    """A directory with a folder for each call."""

    def __init__(self, place: Path, max_bytes: int = MAX_BYTES) -> None:
        """Create the directory, or check that only its owner can write to it.

        Raises:
            InvalidRequest: It belongs to, or may be written by, somebody else.
            Unavailable: It cannot be created.
        """
        self.max_bytes = max_bytes
        """The largest size of a call or its result."""
        self.place = place.absolute()
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = place.stat()
        except OSError as error:
            msg = f"cannot use {place} for calls: {error.strerror}"
            raise Unavailable(msg) from error
        if status.st_uid != os.getuid() or status.st_mode & _OTHERS:
            msg = f"other users have access to {place}, and could make your programs run anything"
            raise InvalidRequest(msg, hint=f"chmod 700 {place}, or name another directory")

    def add(self, function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> Call:
        """Write a call to its folder.

        Raises:
            TypeError: Its function or an argument cannot be pickled.
            TooLarge: It takes too many bytes.
        """
        data = pickled(function, arguments, named)
        if len(data) > self.max_bytes:
            msg = f"the call takes {len(data)} bytes, and {self.max_bytes} are allowed; pass the name of a file instead"
            raise TooLarge(msg)
        call = self.of(secrets.token_hex(_ID_BYTES))
        call.folder.mkdir(mode=0o700)
        with (call.folder / worker.CALL).open("wb") as file:
            pickle.dump((self.max_bytes, [os.path.abspath(place) for place in sys.path]), file)
            file.write(data)
        return call

    def of(self, name: str) -> Call:
        """Return the call of a name.

        Raises:
            InvalidRequest: No call has such a name.
        """
        if not name.isalnum():
            msg = f"{name!r} is not the name of a call"
            raise InvalidRequest(msg)
        return Call(self.place / name)

    def forget(self, existing: Callable[[Sequence[str]], Iterable[str]]) -> None:
        """Delete the folders of jobs that are gone; ``existing`` returns the ids that still exist."""
        old = {call: call.job for call in self._older_than(time.time() - _KEEP_S)}
        present = set(existing([job for job in old.values() if job])) if old else set()
        for call, job in old.items():
            if job not in present:
                call.delete()

    def _older_than(self, moment: float) -> list[Call]:
        calls = []
        with suppress(OSError):
            calls = [Call(folder) for folder in self.place.iterdir() if folder.stat().st_mtime < moment]
        return calls


class Call:
    """One call and, once it was made, its outcome."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        """Its name, by which it is found again."""
        return self.folder.name

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of its job, by which it is found again."""
        return {ANNOTATION: self.name}

    @property
    def command(self) -> list[str]:
        """The program that makes it: this Python, so that what was pickled here can be read there."""
        return [sys.executable, "-P", "-c", worker.PROGRAM, str(self.folder)]

    @property
    def job(self) -> str:
        """The id of its job, once noted."""
        with suppress(OSError):
            return (self.folder / "job").read_text()
        return ""

    def note_job(self, job_id: str) -> None:
        """Note the id of its job."""
        with suppress(OSError):
            (self.folder / "job").write_text(job_id)

    def outcome(self, attempt: int, rank: int = 0) -> CallOutcome | None:
        """Read the outcome that a run left, if any."""
        return read_outcome(str(self.folder / worker.outcome_name(attempt, rank)))

    def last_outcome(self) -> CallOutcome | None:
        """Read the newest outcome that runs of its first rank left."""
        numbers = [int(path.name.split(".")[1]) for path in self.folder.glob("outcome.*.0")]
        return self.outcome(max(numbers)) if numbers else None

    def delete(self) -> None:
        """Delete it; double deletion is fine."""
        shutil.rmtree(self.folder, ignore_errors=True)


def pickled(function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> bytes:
    """Pickle a call for another process.

    Raises:
        TypeError: The function or an argument cannot be pickled.
    """
    import cloudpickle

    try:
        data: bytes = cloudpickle.dumps((function, tuple(arguments), dict(named)))
    except Exception as error:
        msg = f"{function!r} or its arguments cannot be sent to another process: {error}"
        raise TypeError(msg) from error
    return data
