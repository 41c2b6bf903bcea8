"""Reads the files for a job's work directories: those of a workspace, and single files on top of them."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from holdfast.domain.record import Struct
from holdfast.domain.workloads.preparing import Input, clashing, path_problem

if TYPE_CHECKING:
    from holdfast.dialects.reading import Fields

INLINE = 32 << 10
"""Bytes up to which a file is stored with its job."""
MOST_FILES = 100
_NO_FILES = b"PK\x05\x06"
"""The beginning of an empty archive."""
_SHA_256 = re.compile(r"[0-9a-f]{64}")


class Files(Struct, frozen=True):
    """The files of a launch."""

    inputs: tuple[Input, ...] = ()
    """Files that are stored already, or small."""
    bundle: bytes = b""
    """An archive to store."""
    large: tuple[tuple[str, bytes], ...] = ()
    """Files to store, by their paths."""


def read_files(fields: Fields) -> Files:
    """Read the workspace, given as an archive or as the name of a stored one, and single files."""
    request = fields.value
    bundle, bundle_id = bytes(request.get("bundle_blob") or b""), str(request.get("bundle_id") or "")
    if bundle and bundle_id:
        fields.problem("bundle_id", "cannot be set together with bundle_blob")
    inputs = [Input(blob=bundle_id, unpack=True)] if bundle_id and _is_known(fields, "bundle_id", bundle_id) else []
    entry = request.get("entrypoint") or {}
    files, named = entry.get("workdir_files") or {}, entry.get("workdir_file_refs") or {}
    if len(files) + len(named) > MOST_FILES:
        message = f"has {len(files) + len(named)} files with workdir_file_refs; at most {MOST_FILES} are allowed"
        fields.problem("entrypoint.workdir_files", message, hint="bring many as the files of a workspace")
        return Files()
    for path, blob in named.items():
        where = f"entrypoint.workdir_file_refs.{path[:80]}"
        if _is_below(fields, where, path) and _is_known(fields, where, blob):
            inputs.append(Input(path, blob=blob))
    for path in clashing({*files, *named}):
        fields.problem("entrypoint.workdir_files", f"has {path[:80]!r} both as a file and as the folder of another one")
    large = []
    for path, data in files.items():
        if not _is_below(fields, f"entrypoint.workdir_files.{path[:80]}", path):
            continue
        if len(data) > INLINE:
            large.append((path, bytes(data)))
        else:
            inputs.append(Input(path, data=base64.b64encode(data).decode()))
    return Files(tuple(inputs), b"" if bundle.startswith(_NO_FILES) else bundle, tuple(large))


def _is_known(fields: Fields, where: str, blob: str) -> bool:
    if _SHA_256.fullmatch(blob):
        return True
    fields.problem(where, f"{blob[:80]!r} is no SHA-256 in hexadecimal")
    return False


def _is_below(fields: Fields, where: str, path: str) -> bool:
    why = path_problem(path)
    if why:
        fields.problem(where, f"{path[:80]!r} {why}")
    return not why
