"""Checks archives that are sent along with jobs: nothing of one is written before all of it is known to be fit."""

from __future__ import annotations

import io
import stat
import zipfile
from typing import TYPE_CHECKING

from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_ENTRIES = 20_000
LARGEST_UNPACKED = 1 << 30
"""Bytes of all that an archive has."""
MOST_RATIO, FREELY_UNPACKED = 200, 64 << 20
"""By how much an archive may grow, once it has more than so many bytes."""
_LONGEST_PART, _LONGEST_NAME = 255, 4096
_ENTRY = b"PK\x01\x02"
"""What the list of an archive has once for each entry, and an archive within it for each of its own."""
_MOST_WITHIN = 5
_MOST_TOLD = 20
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED = 1
_UNIX = 3


def archive_problems(data: bytes, path: str) -> list[Problem]:
    """Say all that keeps a zip archive from being unpacked into a directory of its own.

    Args:
        data: The archive.
        path: The field that it came in.
    """
    found = data.count(_ENTRY)
    if found > _MOST_WITHIN * MOST_ENTRIES:  # before the list is read, which takes memory for each
        return [Problem(path, f"has some {found} entries; at most {MOST_ENTRIES} are allowed")]
    try:
        entries = _listed(data)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError) as error:
        return [Problem(path, f"is no zip archive that can be read: {error}")]
    if len(entries) > MOST_ENTRIES:
        return [Problem(path, f"has {len(entries)} entries; at most {MOST_ENTRIES} are allowed")]
    size = sum(entry.file_size for entry in entries)
    problems = []
    if size > LARGEST_UNPACKED:
        problems.append(Problem(path, f"has {size} bytes unpacked; at most {LARGEST_UNPACKED} are allowed"))
    elif size > max(FREELY_UNPACKED, MOST_RATIO * len(data)):
        text = f"has {size} bytes unpacked, more than {MOST_RATIO} times its own {len(data)}; none needs that"
        problems.append(Problem(path, text, hint=f"up to {FREELY_UNPACKED} bytes may"))
    files, folders = set[str](), set[str]()
    for entry in entries:
        why = _refusal(entry) or _clash(entry, files, folders)
        if why:
            problems.append(Problem(f"{path}[{entry.orig_filename[:80]!r}]", why))
    if len(problems) > _MOST_TOLD:
        problems[_MOST_TOLD:] = [Problem(path, f"has {len(problems) - _MOST_TOLD} more such entries")]
    return problems


def _listed(data: bytes) -> list[zipfile.ZipInfo]:
    """List the entries of an archive, and make sure that each begins where the list says."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        for entry in entries[:MOST_ENTRIES]:
            if not entry.flag_bits & _ENCRYPTED:
                archive.open(entry).close()
    return entries


def _refusal(entry: zipfile.ZipInfo) -> str:
    name = entry.orig_filename
    kind = stat.S_IFMT(entry.external_attr >> 16) if entry.create_system == _UNIX else 0
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR} or (kind and (kind == stat.S_IFDIR) != name.endswith("/")):
        return "is a link or a special file; only files and folders are allowed"
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _METHODS:
        return "is encrypted, or packed in another way than stored or deflated"
    parts = name.removesuffix("/").split("/")
    if not _are_names(parts) or len(name.encode("utf-8", "surrogatepass")) > _LONGEST_NAME:
        return "is no relative path without '.', '..', backslashes and control characters"
    return ""


def _are_names(parts: Sequence[str]) -> bool:
    for part in parts:
        if part in {"", ".", ".."} or "\\" in part or not part.isprintable():
            return False
        try:
            if len(part.encode()) > _LONGEST_PART:
                return False
        except UnicodeEncodeError:
            return False
    return True


def _clash(entry: zipfile.ZipInfo, files: set[str], folders: set[str]) -> str:
    """Say whether a name is taken by something that came before; note what it takes."""
    name = entry.orig_filename
    parts = name.removesuffix("/").split("/")
    above = {"/".join(parts[:depth]) for depth in range(1, len(parts))}
    if name.endswith("/"):
        above.add(name.removesuffix("/"))
        taken = not above.isdisjoint(files)
    else:
        taken = name in files or name in folders or not above.isdisjoint(files)
        files.add(name)
    folders |= above
    return "is there twice, or is both a file and a folder" if taken else ""
