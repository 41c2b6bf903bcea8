"""The program of a job that is one call, pickled as Fluster's clients send it; and what installs what that needs.

It is run by its path, by whatever Python the operator chose: it needs the standard library and cloudpickle, and nothing
of Holdfast. What was sent is read here, with the rights of the job's account, and nowhere else.

Usage: ``PYTHON entrypoint.py FILE``, ``PYTHON entrypoint.py --install [--index INDEX] PACKAGE...`` or, to be told
whether this Python will do, ``PYTHON entrypoint.py --check``.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

PACKAGES = ".packages"
"""Where what was installed for a run is, below its work directory."""
LARGEST_RESULT = 16 << 20
"""Bytes."""
_LONGEST_MESSAGE = 4096
_TYPES = "fluster.cluster.types"
_FAILED = 1


class Entrypoint:
    """What upstream's clients pickle, by the name of its module there."""

    callable: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] | None = None

    def __call__(self) -> object:
        """Make the call."""
        return self.callable(*self.args, **(self.kwargs or {}))


def main(words: Sequence[str]) -> int:
    """Do what was asked for; returns the exit code of the program."""
    if words[0] == "--check":
        import cloudpickle

        sys.stdout.write(f"{cloudpickle.__version__}\n")
        return 0
    if words[0] == "--install":
        return _install(words[1:])
    sys.path[0] = os.getcwd()
    if os.path.isdir(PACKAGES):
        sys.path.insert(1, os.path.abspath(PACKAGES))
    _tell(os.environ)
    _provide_types()
    try:
        _leave(_called(words[0]))
    except Exception as error:
        traceback.print_exc()
        _say_why(error)
        return _FAILED
    return 0


def _called(path: str) -> object:
    try:
        with open(path, "rb") as file:
            sent = pickle.load(file)
    except Exception as error:
        error.add_note(f"the entry point could not be read by Python {sys.version.split()[0]} in the job")
        raise
    if isinstance(sent, tuple):
        function, arguments, named = sent
        return function(*arguments, **named)
    return sent.callable(*sent.args, **(sent.kwargs or {}))


def _leave(result: object) -> None:
    """Write down what a call returned, whole or not at all."""
    import cloudpickle

    place = os.environ.get("HOLDFAST_RESULT_FILE")
    if place is None:
        return
    body = cloudpickle.dumps(result)
    if len(body) > LARGEST_RESULT:
        msg = f"the result takes {len(body)} bytes, and {LARGEST_RESULT} are allowed; write it to a file"
        raise ValueError(msg)
    with open(f"{place}.new", "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{place}.new", place)


def _say_why(error: BaseException) -> None:
    """Tell what was raised where it is looked for: in one line, then the end of its traceback."""
    place = os.environ.get("HOLDFAST_TERMINATION_LOG")
    if place is None:
        return
    first = "".join(traceback.format_exception_only(error)).strip()
    trace = "".join(traceback.format_exception(error))
    room = _LONGEST_MESSAGE - len(first.encode()) - 2
    told = f"{first}\n{trace.encode()[-room:].decode(errors='ignore')}" if room > 0 else first
    with open(place, "wb") as file:
        file.write(told.encode("utf-8", "backslashreplace")[:_LONGEST_MESSAGE])


def _tell(environ: Any) -> None:
    """Say in Fluster's variables who the run is, whatever it was sent with under their names."""
    environ["FLUSTER_ATTEMPT_ID"] = str(int(environ.get("HOLDFAST_ATTEMPT", "1")) - 1)
    environ["FLUSTER_BIND_HOST"] = "127.0.0.1"
    for name, value in list(environ.items()):
        if name.startswith("HOLDFAST_PORT_"):
            environ["FLUSTER_PORT_" + name.removeprefix("HOLDFAST_PORT_")] = value
    for theirs, ours in (("FLUSTER_WORKER_ID", "HOLDFAST_NODE"), ("FLUSTER_CONTROLLER_ADDRESS", "HOLDFAST_URL")):
        if ours in environ:
            environ[theirs] = environ[ours]


def _provide_types() -> None:
    """Have the module that upstream's clients pickle by, where it is not installed."""
    try:
        __import__(_TYPES)
    except ImportError:
        above = None
        for depth in range(1, len(_TYPES.split(".")) + 1):
            name = ".".join(_TYPES.split(".")[:depth])
            module = sys.modules.setdefault(name, ModuleType(name))
            if above is not None:
                setattr(above, name.rpartition(".")[2], module)
            above = module
        Entrypoint.__module__ = _TYPES
        setattr(sys.modules[_TYPES], Entrypoint.__name__, Entrypoint)


def _install(words: Sequence[str]) -> int:
    """Install packages for a run; from an index, or with a folder in its place without a network."""
    index: list[str] = []
    if words[:1] == ["--index"]:
        there = words[1]
        index = ["--no-index", "--find-links", there] if there.startswith("/") else ["--index-url", there]
        words = words[2:]
    pip = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--quiet"]
    ended = subprocess.run([*pip, *index, "--target", PACKAGES, "--", *words], check=False)  # noqa: S603 - pip
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
