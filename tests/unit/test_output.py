"""The line of a program's output that says what went wrong, and the message that its last lines make."""

from __future__ import annotations

import pytest

from holdfast.domain.output import LONGEST_LINE, MESSAGE_BYTES, error_line, last_lines, readable
from holdfast.engines.process.shim import files

TRACEBACK = "Traceback (most recent call last):\n  File 'train.py', line 3, in <module>\n    main()\n"
OF_RANK = f"[rank0]: {TRACEBACK}".replace("\n", "\n[rank0]: ")
LINES = [
    ("nothing", "", ""),
    ("only empty lines", "\n \n", ""),
    ("the last line where no other tells more", "epoch 1\nepoch 2\n", "epoch 2"),
    ("a line without its end", "epoch 1\nepoch", "epoch"),
    ("a Python exception", f"{TRACEBACK}ValueError: no such key\n", "ValueError: no such key"),
    ("an exception without words", f"{TRACEBACK}KeyboardInterrupt\n", "KeyboardInterrupt"),
    ("an exception of a module", f"{TRACEBACK}torch.OutOfMemoryError: CUDA out\n", "torch.OutOfMemoryError: CUDA out"),
    ("an exception of any name, by its traceback", f"{TRACEBACK}shop.Broke: no money\n\nbye\n", "shop.Broke: no money"),
    (
        "the exception that was raised last",
        f"{TRACEBACK}KeyError: 'a'\n\nDuring ...:\n\n{TRACEBACK}OSError: b",
        "OSError: b",
    ),
    ("what else is printed after it", f"{TRACEBACK}ValueError: a\nclosing connections\n", "ValueError: a"),
    ("an exception cut off from its traceback", "    main()\nRuntimeError: a\n", "RuntimeError: a"),
    ("an exception of a group", f"{TRACEBACK}  | ExceptionGroup: x\n  +-- 1 --\n    | OSError: a\n", "OSError: a"),
    (
        "not the launcher that says that a rank failed",
        f"{OF_RANK}RuntimeError: NCCL error\n{TRACEBACK}torch.distributed.elastic.ChildFailedError:\n==\nFAILED\n",
        "RuntimeError: NCCL error",
    ),
    (
        "the launcher, if nothing else is known",
        f"{TRACEBACK}subprocess.CalledProcessError: x\n",
        "subprocess.CalledProcessError: x",
    ),
    ("a word that only ends like one", "SomeErrorHandler ready\nbye\n", "bye"),
    ("an error of a tool", "fatal: not a git repository\n\n", "fatal: not a git repository"),
    ("an error before the last line", "ERROR: quota exceeded\ncleaning up\n", "ERROR: quota exceeded"),
    (
        "an exception before a line of its launcher",
        f"{TRACEBACK}ValueError: a\nsrun: error: exit code 1\n",
        "ValueError: a",
    ),
    ("a shell's", "sh: 1: trian: not found\n", "sh: 1: trian: not found"),
    ("a permission", "cat: /etc/shadow: Permission denied\n", "cat: /etc/shadow: Permission denied"),
    ("no errors", "0 errors\nall fine\n", "all fine"),
    ("Go", "panic: index out of range [5]\n\ngoroutine 1 [running]:\nexit status 2\n", "panic: index out of range [5]"),
    (
        "Java, its cause",
        "Exception in thread 'a' E: x\n\tat b\nCaused by: java.io.IOException: disk\n\t... 1 more\n",
        "Caused by: java.io.IOException: disk",
    ),
    ("C", "a: a.c:4: main: Assertion `x' failed.\nAborted (core dumped)\n", "a: a.c:4: main: Assertion `x' failed."),
    ("a crash", "step 3\nSegmentation fault (core dumped)\n", "Segmentation fault (core dumped)"),
    ("a kill", "step 3\nKilled\n", "Killed"),
    ("colours", "\x1b[31;1mError: boom\x1b[0m\n", "Error: boom"),
    ("a progress bar", "10%\r20%\r\x1b[2Kerror: it is over\n", "error: it is over"),
    ("Windows' line ends", "Error: a\r\nbye\r\n", "Error: a"),
    ("control characters", "Error: \0a\x07b\n", "Error: ab"),
    ("what is no text", "Error: a\udcff\n", "Error: a?"),
    ("a line that is too long", "Error: " + "x" * 1000, "Error: " + "x" * (LONGEST_LINE - 10) + "..."),
]


@pytest.mark.parametrize(("text", "line"), [pytest.param(*row[1:], id=row[0]) for row in LINES])
def test_the_line_that_tells_is_found(text: str, line: str) -> None:
    assert error_line(text) == line


@pytest.mark.parametrize("part", ["x", "Error ", "\r", "\x1b[", "\x1b]", "a.B", "[rank0]: ", "\n", f"{TRACEBACK} |\n"])
def test_what_is_made_of_hostile_output_is_bounded(part: str) -> None:
    text = part * ((64 << 10) // len(part))
    assert len(error_line(text)) <= LONGEST_LINE
    assert len(readable(text)) <= len(text)


def test_the_last_lines_are_the_message_as_far_as_there_is_room() -> None:
    assert last_lines(()) == ""
    assert last_lines(("a", "b", "")) == "a\nb"
    many = tuple(f"line {number} é" for number in range(1000))
    message = last_lines(many)
    assert message.endswith("line 999 é")
    assert MESSAGE_BYTES - 20 < len(message.encode()) <= MESSAGE_BYTES
    assert message.split("\n")[0] in many
    assert last_lines(("é" * 5000,)) == "é" * (MESSAGE_BYTES // 2)


def test_the_last_lines_of_a_log_end_at_line_feeds_and_where_a_progress_bar_began_anew() -> None:
    text = "form\x0cfeed\r\nnel\x85nel\u2028still nel\n10%\r20%\n\nend"
    assert files.last_lines(text) == ["form\x0cfeed", "nel\x85nel\u2028still nel", "10%", "20%", "", "end"]
    assert (files.last_lines(""), files.last_lines("a\n")) == ([], ["a"])
