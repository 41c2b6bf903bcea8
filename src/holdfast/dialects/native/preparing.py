"""Reads and writes what happens before a job's program is started."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from holdfast.dialects.reading import Fields, shown
from holdfast.domain.workloads.preparing import DEFAULT_TIMEOUT_S, Input, Preparation, clashing, path_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.workloads.spec import JobSpec


MOST_INPUTS = 100
LONGEST_TEXT = 32 << 10
_BLOB = re.compile(r"[0-9a-f]{64}")


def read_preparation(spec: Fields, read_command: Callable[[Fields], tuple[str, ...]]) -> Preparation | None:
    """Read ``prepare``: a program, like the job's own, and the time it may take."""
    part = spec.nested("prepare")
    if part is None:
        return None
    command, timeout_s = read_command(part), part.duration("timeout")
    part.finish()
    if timeout_s == 0:
        part.problem("timeout", "must be more than 0")
    return Preparation(command, DEFAULT_TIMEOUT_S if timeout_s is None else timeout_s)


def read_inputs(spec: Fields) -> tuple[Input, ...]:
    """Read ``inputs``: files sent before, by SHA-256, or short texts in place."""
    value = spec.raw("inputs")
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MOST_INPUTS:
        spec.mistyped("inputs", value, f"a list of at most {MOST_INPUTS} inputs")
        return ()
    if value and spec.has("workingDir"):
        spec.problem("inputs", "are put into each run's work directory, and workingDir is another", hint="leave it out")
    inputs = []
    for place, item in enumerate(value):
        if not isinstance(item, dict):
            spec.mistyped(f"inputs[{place}]", item, "a mapping")
            continue
        inputs.append(_read_input(Fields(item, spec.at(f"inputs[{place}]"), spec.problems)))
    for path in clashing(item.path for item in inputs):
        spec.problem("inputs", f"have {shown(path)} both as a file and as the folder of another one")
    return tuple(inputs)


def _read_input(part: Fields) -> Input:
    path, blob = part.text("path"), part.text("blob")
    text, unpack = part.text("text", longest=LONGEST_TEXT), part.flag("unpack")
    part.finish()
    if (blob is None) == (text is None):
        hint = "blob: the SHA-256 of what was sent; text: what is in the file"
        part.problem("", "must have one of blob and text", hint=hint)
    if blob is not None and not _BLOB.fullmatch(blob):
        part.problem("blob", f"{shown(blob)} is no SHA-256 in hexadecimal")
    if bool(unpack) == (path is not None) or (unpack and text is not None):
        part.problem("", "must have a path, or be a blob to unpack", hint="unpack: true takes a zip archive")
    if path is not None and (why := path_problem(path)):
        part.problem("path", f"{shown(path)} {why}", hint="such as data/settings.json")
    data = "" if text is None else b64encode(text.encode("utf-8", "replace")).decode()
    return Input(path or "", blob or "", data, bool(unpack))


def write_preparing(spec: JobSpec) -> dict[str, Any]:
    """Write the preparation, durations in seconds."""
    written: dict[str, Any] = {"identity": True} if spec.identity else {}
    if not spec.keeps_work:
        written["keepWorkDirectory"] = False
    if spec.inputs:
        written["inputs"] = [_write_input(item) for item in spec.inputs]
    if spec.prepare is not None:
        written["prepare"] = {"command": list(spec.prepare.command), "timeout": spec.prepare.timeout_s}
    return written


def _write_input(item: Input) -> dict[str, Any]:
    written: dict[str, Any] = {"unpack": True} if item.unpack else {"path": item.path}
    if item.blob:
        return {**written, "blob": item.blob}
    data = b64decode(item.data)
    try:
        return {**written, "text": data.decode()}
    except UnicodeDecodeError:
        return {**written, "bytes": len(data)}
