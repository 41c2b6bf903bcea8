"""The outcome of a call, which a run writes and the caller reads.

A file holds two pickles: what anybody can read, and the value or exception itself, which may need the caller's code.
"""

from __future__ import annotations

import os
import sys

try:
    import _pickle as pickle  # what pickle is made of, without the rest of it: a third of the time until a call begins
except ImportError:
    import pickle  # type: ignore[no-redef] # the same

from holdfast.sdk.calls.naming import in_words

TYPE_CHECKING = False  # importing typing would take a tenth of the time that a call has
if TYPE_CHECKING:
    from typing import Any

load, loads = pickle.load, pickle.loads
_PROTOCOL = 5
_FRAMES_OF_OURS = 1


class TooLarge(ValueError):
    """A call or its result takes more bytes than were allowed."""


class CallError(Exception):
    """Replaces an exception that cannot be restored; its message names the class of that one."""


class RemoteTraceback(Exception):
    """Where in the run an exception was raised, as text; the cause of the exception that is raised again."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        """Return the text as a traceback has it."""
        return f'\n"""\n{self.text}"""'


class CallOutcome:
    """How a call ended."""

    def __init__(self, *, ok: bool, body: bytes, summary: str = "", trace: str = "") -> None:
        """Remember it.

        Args:
            ok: Whether it returned.
            body: What it returned or raised, pickled.
            summary: Of an error, ``ClassName: text``.
            trace: Of an error, its traceback.
        """
        self.ok = ok
        self.body = body
        self.summary = summary
        self.trace = trace

    def value(self) -> Any:
        """Return what the call returned.

        Raises:
            BaseException: What it raised, with the run's traceback as its cause; ``CallError`` in its place if it
                cannot be restored.
        """
        try:
            loaded = pickle.loads(self.body)
        except Exception as error:
            msg = f"{self.summary or 'the result'} cannot be read here: {error}"
            raise CallError(msg) from RemoteTraceback(self.trace) if self.trace else error
        if self.ok:
            return loaded
        raise loaded from RemoteTraceback(self.trace)


def read_outcome(path: str) -> CallOutcome | None:
    """Read an outcome; ``None`` if the run left none."""
    try:
        with open(path, "rb") as file:
            ok, summary, trace = load(file)
            return CallOutcome(ok=ok, body=file.read(), summary=summary, trace=trace)
    except FileNotFoundError:
        return None


def of_value(value: object, most: int) -> CallOutcome:
    """Make the outcome of a call that returned.

    Raises:
        TooLarge: It takes more than ``most`` bytes.
    """
    body = dumps(value)
    if len(body) > most:
        msg = f"the result takes {len(body)} bytes, and {most} are allowed; write it to a file, or raise max_bytes"
        raise TooLarge(msg)
    return CallOutcome(ok=True, body=body)


def of_error(error: BaseException, most: int) -> CallOutcome:
    """Make the outcome of a call that raised; an exception that cannot be restored is described in words."""
    import traceback

    from holdfast.sdk.calls.context import RunFailed

    inner = error.__traceback__
    for _ in range(_FRAMES_OF_OURS):
        inner = inner.tb_next if inner is not None and inner.tb_next is not None else inner
    trace = "".join(traceback.format_exception(type(error), error, inner))
    summary = str(error) if isinstance(error, RunFailed) else in_words(error)
    body = _body_of(error)
    if not body or len(body) > most:
        body = pickle.dumps(CallError(summary))
    return CallOutcome(ok=False, summary=summary, trace=trace, body=body)


def _body_of(error: BaseException) -> bytes:
    """Pickle an exception; empty if it cannot be raised elsewhere, or would end the program there."""
    if not isinstance(error, Exception):
        return b""
    try:
        body = dumps(error)
        pickle.loads(body)
    except Exception:
        return b""
    return body


def write_outcome(path: str, outcome: CallOutcome) -> None:
    """Write an outcome so that it is there whole or not at all, also after a crash of the machine."""
    fresh = f"{path}.new"
    with open(fresh, "wb") as file:
        pickle.dump((outcome.ok, outcome.summary, outcome.trace), file)
        file.write(outcome.body)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)


def dumps(value: object) -> bytes:
    """Pickle a value, with cloudpickle if the call used it or if nothing else can."""
    if "cloudpickle" not in sys.modules:
        try:
            return pickle.dumps(value, protocol=_PROTOCOL)
        except Exception:
            return _by_cloudpickle(value)
    return _by_cloudpickle(value)


def _by_cloudpickle(value: object) -> bytes:
    import cloudpickle  # most calls do without it, and begin sooner

    data: bytes = cloudpickle.dumps(value)
    return data
