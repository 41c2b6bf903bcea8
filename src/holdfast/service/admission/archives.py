"""Checks archives that are sent with jobs. Nothing of an archive is written before all of it is known to be valid."""

from __future__ import annotations

import io
import stat
import zipfile
from typing import TYPE_CHECKING

from holdfast.domain.workloads.preparing import path_problem
from holdfast.errors import Problem

if TYPE_CHECKING:
    from typing import TypeAlias

    _Folder: TypeAlias = dict[str, "_Folder | None"]
    """The entries of a folder by name; ``None`` is a file."""

MOST_ENTRIES = 20_000
"""Also of the files and folders it unpacks to: an entry may need folders that have no entry of their own."""
LARGEST_UNPACKED = 1 << 30
"""Bytes of all entries together."""
MOST_RATIO, FREELY_UNPACKED = 200, 64 << 20
"""How many times its size an archive may unpack to, beyond so many bytes."""
_ENTRY = b"PK\x01\x02"
"""The mark of an entry in an archive's directory; an archive within the archive has one for each of its own."""
_MOST_WITHIN = 5
_MOST_TOLD = 20
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED = 1
_UNIX = 3


def archive_problems(data: bytes, path: str) -> list[Problem]:
    """Report everything that keeps a zip archive from being unpacked into a directory of its own.

    Args:
        data: The archive.
        path: The field that holds it.
    """
    count = data.count(_ENTRY)
    if count > _MOST_WITHIN * MOST_ENTRIES:  # reading the directory takes memory for each
        return [Problem(path, f"has some {count} entries; at most {MOST_ENTRIES} are allowed")]
    try:
        entries = _listed(data)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError) as error:
        return [Problem(path, f"is not a readable zip archive: {error}")]
    if len(entries) > MOST_ENTRIES:
        return [Problem(path, f"has {len(entries)} entries; at most {MOST_ENTRIES} are allowed")]
    size = sum(entry.file_size for entry in entries)
    problems = []
    if size > LARGEST_UNPACKED:
        problems.append(Problem(path, f"has {size} bytes unpacked; at most {LARGEST_UNPACKED} are allowed"))
    elif size > max(FREELY_UNPACKED, MOST_RATIO * len(data)):
        text = f"has {size} bytes unpacked, more than {MOST_RATIO} times its own {len(data)}"
        problems.append(Problem(path, text, hint=f"up to {FREELY_UNPACKED} bytes may"))
    tree = _Tree()
    for entry in entries:
        why = _refusal(entry) or tree.clash(entry.orig_filename)
        if tree.size > MOST_ENTRIES:
            return [Problem(path, f"has more than {MOST_ENTRIES} files and folders, which are the most allowed")]
        if why:
            problems.append(Problem(f"{path}[{entry.orig_filename[:80]!r}]", why))
    if len(problems) > _MOST_TOLD:
        problems[_MOST_TOLD:] = [Problem(path, f"has {len(problems) - _MOST_TOLD} more such entries")]
    return problems


def _listed(data: bytes) -> list[zipfile.ZipInfo]:
    """List the entries of an archive, and make sure that each begins where the directory says."""
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
        return "is encrypted or compressed; entries must be stored or deflated"
    if "\\" in name:
        return "is not a path below the work directory: it has a backslash"
    return path_problem(name.removesuffix("/"))


class _Tree:
    """The tree that an archive unpacks to. Holds each folder once, as all paths together may be far longer than it."""

    def __init__(self) -> None:
        self.size = 0
        """Files and folders."""
        self._top: _Folder = {}

    def clash(self, name: str) -> str:
        """Add an entry's file or folder; returns the problem if its place is taken."""
        *above, last = name.removesuffix("/").split("/")
        folder: _Folder | None = self._top
        for part in [*above, last] if name.endswith("/") else above:
            folder = self._folder(folder, part)
        if folder is None or (not name.endswith("/") and last in folder):
            return "occurs twice, or is both a file and a folder"
        if not name.endswith("/"):
            folder[last] = None
            self.size += 1
        return ""

    def _folder(self, folder: _Folder | None, part: str) -> _Folder | None:
        if folder is None or part in folder:
            return None if folder is None else folder[part]
        self.size += 1
        created: _Folder = {}
        folder[part] = created
        return created
