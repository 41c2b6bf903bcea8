"""Reads a package of Python's standard library and counts its words, packs it, or measures its functions."""

from __future__ import annotations

import argparse
import ast
import collections
import importlib.util
import lzma
import re
import sys
from pathlib import Path


def sources(package: str) -> list[Path]:
    """List the package's source files: an input that is on every machine with Python."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"there is no package {package!r}")
    origin = Path(spec.origin)
    return sorted(origin.parent.rglob("*.py")) if origin.name == "__init__.py" else [origin]


def words(files: list[Path]) -> str:
    """Say which words are used most."""
    counts: collections.Counter[str] = collections.Counter()
    for path in files:
        counts.update(re.findall(r"[a-z]{4,}", path.read_text(errors="replace").lower()))
    top = ", ".join(f"{word} {count}" for word, count in counts.most_common(3))
    return f"{counts.total()} words, most of all {top}"


def pack(files: list[Path]) -> str:
    """Compress everything, and check that it can be read back."""
    raw = b"".join(path.read_bytes() for path in files)
    packed = lzma.compress(raw)
    if lzma.decompress(packed) != raw:
        sys.exit("the packed copy differs")
    return f"{len(raw)} bytes packed to {len(packed)} ({100 * len(packed) // max(1, len(raw))} %)"


def functions(files: list[Path]) -> str:
    """Find the longest function."""
    longest = ("none", 0)
    total = 0
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(errors="replace"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                total += 1
                longest = max(longest, (node.name, (node.end_lineno or 0) - node.lineno + 1), key=lambda item: item[1])
    return f"{total} functions, the longest is {longest[0]} with {longest[1]} lines"


TASKS = {"words": words, "pack": pack, "functions": functions}


def main() -> int:
    """Run one task over one package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("package")
    options = parser.parse_args()
    files = sources(options.package)
    print(f"{options.package}: {len(files)} files, {TASKS[options.task](files)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
