"""Rewrites the stubs of every door, or with ``--check`` says which are stale."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parents[2]
API = ROOT / "src" / "holdfast" / "api"
DOORS = ("armada", "connect", "fluster", "iris")
SOURCES = "protocol"
STUBS = "_generated"
_IMPORT = re.compile(r"^from (?P<folder>[\w.]+) import (?P<module>\w+)_pb2 as (?P<alias>\w+)$", re.MULTILINE)
_MODULE = '''"""Messages of ``{path}``; written by ``python -m tools.protos``."""

from holdfast.api.{door}.{stubs}.pool import PROTOCOL

globals().update(PROTOCOL.exported("{path}"))
'''
_DOCUMENTED = '''"""Stubs; written by ``python -m tools.protos``."""
'''
_PACKAGE = '''"""What ``{sources}`` describes; written by ``python -m tools.protos``."""

from holdfast.api.protobuf import Protocol

PROTOCOL = Protocol(__package__)
'''


def stubs_of(door: str) -> dict[str, bytes]:
    """Make the files of the stubs of a door, by name."""
    folder = API / door / SOURCES
    sources = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.proto"))
    found = {"__init__.py": _DOCUMENTED.encode(), "pool.py": _PACKAGE.format(sources=SOURCES).encode()}
    with tempfile.TemporaryDirectory() as made:
        described = Path(made, "descriptors.binpb")
        include = Path(grpc_tools.__file__).parent / "_proto"
        words = ["protoc", f"-I{folder}", f"-I{include}", "--include_imports", f"--descriptor_set_out={described}"]
        if protoc.main([*words, f"--pyi_out={made}", *sources]):
            msg = f"the sources in {folder} cannot be compiled"
            raise SystemExit(msg)
        found[described.name] = described.read_bytes()
        for source in sources:
            name = module_of(source)
            typed = Path(made, source.removesuffix(".proto").replace(".", "/") + "_pb2.pyi")
            text = _MODULE.format(path=source, door=door, stubs=STUBS)
            found[f"{name}.py"] = text.encode()
            found[f"{name}.pyi"] = relative(typed.read_text()).encode()
    return found


def module_of(source: str) -> str:
    """Name the module of a source: ``armada/job.proto`` is ``job``; Kubernetes' are all called generated."""
    path = Path(source)
    if path.stem != "generated":
        return path.stem
    folder = path.parent.parts
    return folder[-2] if re.fullmatch(r"v\d+", folder[-1]) else folder[-1]


def relative(stub: str) -> str:
    """Make a stub import its neighbours, not what was compiled from the same source elsewhere."""

    def moved(found: re.Match[str]) -> str:
        folder, module, alias = found["folder"], found["module"], found["alias"]
        if folder == "google.protobuf":
            return found[0]
        source = folder.replace(".", "/") + f"/{module}.proto"
        return f"from . import {module_of(source)} as {alias}"

    return _IMPORT.sub(moved, stub)


def main(arguments: list[str]) -> int:
    """Run the task."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tools.protos [--check]", file=sys.stderr)
        return 2
    stale = 0
    for door in DOORS:
        folder, wanted = API / door / STUBS, stubs_of(door)
        there = {path.name: path.read_bytes() for path in folder.glob("*.*")} if folder.is_dir() else {}
        if there == wanted:
            continue
        stale += 1
        if arguments:
            print(f"the stubs in {folder.relative_to(ROOT)} are stale: run python -m tools.protos", file=sys.stderr)
            continue
        folder.mkdir(exist_ok=True)
        for name in there.keys() - wanted.keys():
            (folder / name).unlink()
        for name, content in wanted.items():
            (folder / name).write_bytes(content)
        print(f"wrote {folder.relative_to(ROOT)}")
    return 1 if stale and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
