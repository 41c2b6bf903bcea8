"""The program that makes the calls of Fluster's clients, as its own process: how each ends, and what it leaves."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest

from holdfast.app.entrance.pythons import RUNNER
from holdfast.fluster.launching import Entrypoint
from holdfast.sdk.calls.entrypoint import LARGEST_RESULT
from tools.clients.pythons import python_for

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHERS = [version for version in ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14") if version != HERE]


class Made:
    """A call that was made."""

    def __init__(self, folder: Path, body: bytes, python: Sequence[str] = (sys.executable,), **environ: str) -> None:
        """Make it in a folder."""
        self._result, message = folder / "result", folder / "message"
        (folder / "work").mkdir()
        (folder / "work" / "call").write_bytes(body)
        left = {"HOLDFAST_RESULT_FILE": str(self._result), "HOLDFAST_TERMINATION_LOG": str(message)}
        self.ended = subprocess.run(
            [*python, "-u", RUNNER, "call"],
            cwd=folder / "work",
            env={"PATH": os.defpath, **left, **environ},
            capture_output=True,
            timeout=60,
            check=False,
        )
        self.code = self.ended.returncode
        self.message = message.read_bytes().decode() if message.exists() else ""

    @property
    def result(self) -> Any:  # noqa: ANN401 - whatever was returned
        return pickle.loads(self._result.read_bytes())  # noqa: S301 - of this test's own

    @property
    def has_result(self) -> bool:
        return self._result.exists()


def called(source: str) -> bytes:
    """Pickle a call of what is called ``job``, by value."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(source, space)  # noqa: S102 - of a test
    return Entrypoint.from_callable(space["job"]).serialized()


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit(None)", 0, ""),
        ("import sys; sys.exit(300)", 300 & 0xFF, ""),
        ("import sys; sys.exit('no data')", 1, "SystemExit: no data"),
        ("import os; os._exit(7)", 7, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
        ("raise KeyboardInterrupt", -2, "KeyboardInterrupt"),
        ("raise BaseException('odd')", 1, "BaseException: odd"),
        ("raise ValueError('\\ud800 half')", 1, "ValueError: \\ud800 half"),
        ("raise ValueError('\u65e5' * 5000)", 1, "ValueError: \u65e5\u65e5"),
        ("job()", 1, "RecursionError: maximum recursion depth exceeded"),
        ("import threading; return threading.Lock()", 1, "TypeError: what the call returned cannot be pickled"),
        (
            "class Odd(Exception):\n        def __reduce__(self): 1 / 0\n    raise Odd('own')",
            1,
            "job.<locals>.Odd: own",
        ),
        ("class Odd(Exception):\n        def __str__(self): 1 / 0\n    raise Odd", 1, "Odd: <exception str() failed>"),
        ("value = []\n    for _ in range(5000): value = [value]\n    return value", 1, "cannot be pickled"),
    ],
)
def test_however_a_call_ends_its_exit_code_and_its_last_words_say_it(
    tmp_path: Path, body: str, code: int, says: str
) -> None:
    made = Made(tmp_path, called(f"def job():\n    {body}"))
    assert (made.code, made.has_result) == (code, False), made.ended.stderr
    assert says in made.message.splitlines()[0] if says else not made.message
    assert len(made.message.encode()) <= 4096


def test_a_result_of_the_largest_size_is_left_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    room = LARGEST_RESULT - len(cloudpickle.dumps(bytes(LARGEST_RESULT - 100))) + LARGEST_RESULT - 100
    for name in ("fits", "over"):
        (tmp_path / name).mkdir()
    fits = Made(tmp_path / "fits", called(f"def job(): return bytes({room})"))
    assert (fits.code, len(fits.result)) == (0, room)
    over = Made(tmp_path / "over", called(f"def job(): return bytes({room + 1})"))
    assert (over.code, over.has_result) == (1, False)
    assert f"takes {LARGEST_RESULT + 1} bytes, and {LARGEST_RESULT} are allowed" in over.message


def test_what_is_printed_need_not_be_text(tmp_path: Path) -> None:
    made = Made(tmp_path, called("def job():\n    import os; os.write(1, b'\\xff\\xfe\\n')\n    print('after')"))
    assert (made.code, made.ended.stdout) == (0, b"\xff\xfe\nafter\n")


def test_threads_that_are_left_end_their_work_unless_they_are_daemons(tmp_path: Path) -> None:
    source = """
def job():
    import threading, time
    def late(): time.sleep(0.2); print("late", flush=True)
    threading.Thread(target=late).start()
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    return "early"
"""
    at = time.monotonic()
    made = Made(tmp_path, called(source))
    assert (made.code, made.result, made.ended.stdout) == (0, "early", b"late\n")
    assert time.monotonic() - at < 60


@pytest.mark.parametrize("rest", ["return 'of the child'", "raise ValueError('of the child')"])
def test_of_a_call_that_forks_only_the_one_that_was_begun_leaves_something(tmp_path: Path, rest: str) -> None:
    source = f"""
def job():
    import os, time
    parent = os.getpid()
    if os.fork() == 0:
        while os.getppid() == parent: time.sleep(0.01)
        {rest}
    return "of the parent"
"""
    made = Made(tmp_path, called(source))
    assert (made.code, made.result, made.message) == (0, "of the parent", "")


def test_a_call_that_this_python_cannot_read_says_which_one_wrote_it(tmp_path: Path) -> None:
    made = Made(tmp_path, b"cno_such_module\nfunction\n.#python=2.7")
    assert made.code == 1
    assert made.message.splitlines()[0] == (
        f"UnreadableCall: the entry point could not be read by Python {HERE} in the job; Python 2.7 pickled it: "
        "ModuleNotFoundError: No module named 'no_such_module'"
    )
    assert made.ended.stderr.startswith(b"this call was pickled by Python 2.7 and is made by " + HERE.encode())


@pytest.mark.parametrize("version", OTHERS)
def test_a_python_of_another_version_makes_calls_that_it_can_read(tmp_path: Path, version: str) -> None:
    python = python_for([version], os.environ)
    if python is None:
        pytest.skip(f"NO PYTHON {version}: put one on the path, or below pyenv's versions")
    place = tmp_path / "packages"
    shutil.copytree(Path(cloudpickle.__file__).parent, place / "cloudpickle")
    folders = [tmp_path / name for name in ("returns", "raises", "exits")]
    for folder in folders:
        folder.mkdir()
    named = Entrypoint.from_callable(os.path.join, "a", "b").serialized()
    made = Made(folders[0], named, (python,), PYTHONPATH=str(place))
    assert (made.code, made.result) == (0, "a/b"), made.ended.stderr
    assert f"is made by {version}".encode() in made.ended.stderr
    raises = Made(folders[1], Entrypoint.from_callable(int, "x").serialized(), (python,), PYTHONPATH=str(place))
    assert raises.message.startswith("ValueError: invalid literal for int()")
    exits = Made(folders[2], Entrypoint.from_callable(sys.exit, "why").serialized(), (python,), PYTHONPATH=str(place))
    assert (exits.code, exits.message.splitlines()[0]) == (1, "SystemExit: why")
