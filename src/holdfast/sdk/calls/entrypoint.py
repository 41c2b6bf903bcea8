"""The program of a job that is one call, pickled as Fluster's clients send it; and what installs what that needs.

It is run by its path, by whatever Python from 3.9 on the operator chose: it needs the standard library and cloudpickle,
and nothing of Holdfast. What was sent is read here, with the rights of the job's account, and nowhere else.

Usage: ``PYTHON entrypoint.py FILE``, ``PYTHON entrypoint.py --install [--by INSTALLER] [--index INDEX] PACKAGE...`` or,
to be told whether this Python will do, ``PYTHON entrypoint.py --check``.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import re
import shutil
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
_FAILED, _MISSING = 1, 127
_WRITTEN = re.compile(rb"#python=(\d+\.\d+)$")
"""What a pickle may end with: the Python that wrote it."""
_LONGEST_TRAILER = 32


class UnreadableCall(Exception):
    """The call that was sent cannot be read here."""


class Entrypoint:
    """What upstream's clients pickle, by the name of its module there."""

    callable: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] | None = None

    def __call__(self) -> object:
        """Make the call."""
        return self.callable(*self.args, **(self.kwargs or {}))


def main(words: Sequence[str]) -> int:
    """Carry out the command line; returns the exit code of the program."""
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
    return _make(words[0])


def _make(path: str) -> int:
    """Make a call, and write its result or failure; returns the exit code of the program."""
    begun_as = os.getpid()
    try:
        result = _called(path)
        if os.getpid() == begun_as:  # else it forked, and this is the other one
            _leave(result)
    except BaseException as error:
        if os.getpid() != begun_as or (isinstance(error, SystemExit) and isinstance(error.code, (int, type(None)))):
            raise
        _say_why(error)
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            raise
        traceback.print_exc()
        return _FAILED
    return 0


def _called(path: str) -> object:
    here = "{}.{}".format(*sys.version_info)
    with open(path, "rb") as file:
        body = file.read()
    written = _WRITTEN.search(body[-_LONGEST_TRAILER:])
    pickled_by = written[1].decode() if written else ""
    if pickled_by not in {"", here}:
        sys.stderr.write(
            f"this call was pickled by Python {pickled_by} and is made by {here}: it may fail for that alone\n"
        )
    try:
        call = pickle.loads(body)
    except Exception as error:
        origin = f"; Python {pickled_by} pickled it" if pickled_by else ""
        msg = f"the entry point could not be read by Python {here} in the job{origin}: {type(error).__name__}: {error}"
        raise UnreadableCall(msg) from error
    if isinstance(call, tuple):
        function, arguments, named = call
        return function(*arguments, **named)
    return call.callable(*call.args, **(call.kwargs or {}))


def _leave(result: object) -> None:
    """Write the result of a call, whole or not at all."""
    import cloudpickle

    place = os.environ.get("HOLDFAST_RESULT_FILE")
    if place is None:
        return
    try:
        body = cloudpickle.dumps(result)
    except Exception as error:
        msg = f"what the call returned cannot be pickled: {type(error).__name__}: {error}"
        raise TypeError(msg) from error
    if len(body) > LARGEST_RESULT:
        msg = f"the result takes {len(body)} bytes, and {LARGEST_RESULT} are allowed; write it to a file"
        raise ValueError(msg)
    with open(f"{place}.new", "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{place}.new", place)


def _say_why(error: BaseException) -> None:
    """Write the exception to the termination log: one line, then the end of its traceback."""
    place = os.environ.get("HOLDFAST_TERMINATION_LOG")
    if place is None:
        return
    text = _bytes("".join(traceback.format_exception_only(type(error), error)).strip())
    room = _LONGEST_MESSAGE - len(text) - 1
    if room > 0:
        trace = _bytes("".join(traceback.format_exception(type(error), error, error.__traceback__)))
        text += b"\n" + trace[-room:].decode(errors="ignore").encode()
    with open(place, "wb") as file:
        file.write(text[:_LONGEST_MESSAGE].decode(errors="ignore").encode())


def _bytes(text: str) -> bytes:
    """Encode a text that may not be valid: the message of an exception can be anything."""
    return text.encode("utf-8", "backslashreplace")


def _tell(environ: Any) -> None:
    """Set Fluster's variables that describe the run, over any values that were sent."""
    environ["FLUSTER_ATTEMPT_ID"] = str(int(environ.get("HOLDFAST_ATTEMPT", "1")) - 1)
    environ["FLUSTER_BIND_HOST"] = "127.0.0.1"
    for name, value in list(environ.items()):
        if name.startswith("HOLDFAST_PORT_"):
            environ["FLUSTER_PORT_" + name.removeprefix("HOLDFAST_PORT_")] = value
    for theirs, ours in (("FLUSTER_WORKER_ID", "HOLDFAST_NODE"), ("FLUSTER_CONTROLLER_ADDRESS", "HOLDFAST_URL")):
        if ours in environ:
            environ[theirs] = environ[ours]


def _provide_types() -> None:
    """Provide the module that upstream's clients pickle by, if it is not installed."""
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
    options = {}
    while words[0] in {"--by", "--index"}:
        options[words[0]], words = words[1], words[2:]
    index = options.get("--index", "")
    uv = _uv()
    installer = options.get("--by") or ("uv" if uv and (index or not _pip_is_set()) else "pip")
    if installer == "uv" and not uv:
        sys.stderr.write(f"uv is not on this machine: neither on the PATH {os.environ.get('PATH')} nor a module here\n")
        return _MISSING
    folder = index.startswith("/")
    place = ["--no-index", "--find-links", index] if folder else ["--index-url", index] if index else []
    if installer == "uv":
        # Copies, as packages of a run are its own to change; and of no Python but this one.
        os.environ.update(UV_LINK_MODE="copy", UV_PYTHON_DOWNLOADS="never", UV_NO_PROGRESS="1")
        apart = [*(["--offline"] if folder else []), *([] if _can_cache() else ["--no-cache"])]
        tool = [*uv, "pip", "install", "--python", sys.executable, "--quiet", *apart]
    else:
        tool = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--quiet"]
    return subprocess.run([*tool, *place, "--target", PACKAGES, "--", *words], check=False).returncode  # noqa: S603 - its own


def _uv() -> Sequence[str]:
    """Return how uv is run, if it is here."""
    path = shutil.which("uv")
    if path:
        return [path]
    return [sys.executable, "-m", "uv"] if importlib.util.find_spec("uv") else []


def _can_cache() -> bool:
    return "UV_CACHE_DIR" in os.environ or os.access(os.path.expanduser("~"), os.W_OK)


def _pip_is_set() -> bool:
    """Tell whether pip is configured with a source of packages, which uv would not know."""
    files = ("/etc/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf", os.path.join(sys.prefix, "pip.conf"))
    return any(name.startswith("PIP_") for name in os.environ) or any(
        os.path.exists(os.path.expanduser(file)) for file in files
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
