"""The shape of the code, measured: sizes, nesting, names, docstrings, doubles and exceptions to the linters.

Complexity and parameters are ruff's, imports are import-linter's; both run in ``./dev check``.
"""

from __future__ import annotations

import ast
import gc
import re
import statistics
import sys
import tokenize
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[2]
MIGRATIONS = "migrations"
GENERATED = "_generated"
"""Written by a compiler; the one exception."""
SOURCES = sorted(path for path in (ROOT / "src").rglob("*.py") if not {MIGRATIONS, GENERATED} & {*path.parts})
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TASKS = sorted(path for folder in ("tools", "bench", "examples") for path in (ROOT / folder).rglob("*.py"))

FORBIDDEN_NAMES = re.compile(r"(^|_)(utils?|common|helpers?|managers?|misc)(_|$)")
DOUBLES = {"Mock", "MagicMock", "AsyncMock", "patch", "create_autospec"}
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PURE_LIBRARIES = {"holdfast", "msgspec", "re2"}
# `signal` only for the names of signals.
PURE_STANDARD = {
    *("__future__", "abc", "base64", "bisect", "collections", "contextlib", "copy", "dataclasses", "datetime"),
    *("decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "itertools", "json", "math"),
    *("operator", "re", "signal", "statistics", "string", "struct", "textwrap", "types", "typing"),
}


def where(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Function(NamedTuple):
    """What is measured of a function; its tree is not kept, as those of all files are two million objects."""

    name: str
    lineno: int
    length: int
    nesting: int
    mocks: bool
    is_stub: bool


class Facts(NamedTuple):
    """What is measured of a file."""

    has_docstring: bool
    functions: list[Function]


def tree(path: Path) -> ast.Module:
    gc.disable()  # there is nothing to collect, and looking for it takes as long as reading
    try:
        return ast.parse(path.read_text())
    finally:
        gc.enable()


@cache
def text(path: Path) -> str:
    return path.read_text()


def lines(path: Path) -> int:
    return text(path).count("\n")


@cache
def facts(path: Path) -> Facts:
    read = tree(path)
    return Facts(
        bool(ast.get_docstring(read)),
        [
            Function(node.name, node.lineno, length(node), nesting(node), uses_doubles(path, node), is_stub(node))
            for node in ast.walk(read)
            if isinstance(node, FUNCTIONS)
        ],
    )


def functions(path: Path) -> list[Function]:
    return facts(path).functions


def those_with(paths: list[Path], pattern: str) -> list[Path]:
    """Choose the files worth looking into: a tree is dear."""
    return [path for path in paths if re.search(pattern, text(path))]


def uses_doubles(path: Path, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(double in text(path) for double in DOUBLES) and not DOUBLES.isdisjoint(names(function))


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def nesting(node: ast.AST) -> int:
    """Count the blocks around the deepest statement; an ``elif`` is no deeper than its ``if``."""
    deepest = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            continue
        chained = isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If)
        deepest = max(deepest, nesting(child) + (isinstance(child, BLOCKS) and not chained))
    return deepest


def names(node: ast.AST) -> set[str]:
    """Collect every name and attribute used in it."""
    used = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
    return used | {child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute)}


def comments(path: Path) -> list[str]:
    with path.open("rb") as stream:
        return [token.string for token in tokenize.tokenize(stream.readline) if token.type == tokenize.COMMENT]


def long_files(paths: list[Path], most: int) -> dict[str, int]:
    return {where(path): lines(path) for path in paths if lines(path) > most}


MUTATORS = {
    "add",
    "append",
    "charge",
    "clear",
    "drop_places",
    "extend",
    "pop",
    "release",
    "remove",
    "setdefault",
    "update",
}


def changed_by(node: ast.AST) -> list[ast.expr]:
    """List what a statement or call changes."""
    match node:
        case ast.Assign() | ast.Delete():
            return [part for target in node.targets for part in getattr(target, "elts", [target])]
        case ast.AugAssign() | ast.AnnAssign():
            return [node.target]
        case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in MUTATORS:
            return [value]
        case _:
            return []


def test_the_controllers_state_changes_through_its_own_methods_alone() -> None:
    allowed = {"queue", "kinds", "schedule_needed", "order"}
    folder = ROOT / "src" / "holdfast" / "controller"
    pokes = [
        f"{where(path)}:{target.lineno} {ast.unparse(target)}"
        for path in sorted(folder.rglob("*.py"))
        if path.name not in {"state.py", "controller.py"}
        for node in ast.walk(tree(path))
        for target in changed_by(node)
        if (found := re.match(r"(?:self\.)?_?(?:state|active)\.(\w+)", ast.unparse(target))) and found[1] not in allowed
    ]
    assert pokes == []


def test_a_source_file_has_at_most_600_lines() -> None:
    assert long_files(SOURCES + TASKS, 600) == {}, "look for the second idea in it"


def test_a_test_file_has_at_most_500_lines() -> None:
    assert long_files(TESTS, 500) == {}


def test_a_function_has_at_most_60_lines() -> None:
    everything = [(path, function) for path in SOURCES + TASKS + TESTS for function in functions(path)]
    assert {f"{where(path)}:{f.name}": f.length for path, f in everything if f.length > 60} == {}


def test_files_and_functions_are_short_as_a_rule(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the measures, so that a drift is seen before it reaches a ceiling."""
    files = [lines(path) for path in SOURCES]
    sizes = [function.length for path in SOURCES for function in functions(path)]
    with capsys.disabled():
        sys.stdout.write(
            f"\nstructure: {len(files)} files, {sum(files)} lines; per file median {statistics.median(files):.0f}, "
            f"max {max(files)}; {len(sizes)} functions, median {statistics.median(sizes):.0f}, max {max(sizes)}\n"
        )
    assert statistics.median(files) <= 200
    assert statistics.median(sizes) <= 12
    assert statistics.quantiles(sizes, n=20)[-1] <= 40


def test_blocks_nest_at_most_3_deep() -> None:
    everything = [(path, function) for path in SOURCES + TASKS for function in functions(path)]
    assert {f"{where(path)}:{f.name}": f.nesting for path, f in everything if f.nesting > 3} == {}


def test_every_module_says_what_it_is_for() -> None:
    silent = [where(path) for path in SOURCES + TASKS + TESTS if not facts(path).has_docstring]
    assert silent == [], "one sentence on what it decides or does"


def test_no_file_is_named_for_everything_and_nothing() -> None:
    paths = [path.relative_to(ROOT) for path in SOURCES + TASKS]
    assert [path for path in paths for part in (*path.parts[:-1], path.stem) if FORBIDDEN_NAMES.search(part)] == []


def test_folders_hold_at_most_20_files_and_nest_at_most_4_deep() -> None:
    package = ROOT / "src"
    folders = {path.parent for path in SOURCES}
    crowded = {str(folder.relative_to(package)): len(list(folder.glob("*.py"))) for folder in folders}
    assert {folder: count for folder, count in crowded.items() if count > 20} == {}
    assert max(len(folder.relative_to(package).parts) for folder in folders) <= 1 + 4


def test_hardly_any_test_uses_a_mock() -> None:
    tests = mocked = 0
    for path in TESTS:
        found = [function for function in functions(path) if function.name.startswith("test_")]
        tests += len(found)
        mocked += sum(function.mocks for function in found)
    assert mocked <= 0.05 * tests


def test_tests_never_sleep() -> None:
    sleeping = [
        f"{where(path)}:{node.lineno}"
        for path in those_with(TESTS, r"\bsleep\(")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "sleep"}
    ]
    assert sleeping == [], "wait on a real signal with a deadline, or use virtual time"


def test_linters_are_silenced_only_with_a_reason() -> None:
    unexplained = []
    for path in those_with(SOURCES, "noqa|type: ignore"):
        for comment in comments(path):
            if not re.search(r"#\s*(noqa|type: ignore)", comment):
                continue
            if not re.search(r"(noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*|type: ignore\[[\w, -]+\])\s+(-|#|--)\s*\S+", comment):
                unexplained.append(f"{where(path)}: {comment}")
    assert unexplained == []


def imports(path: Path) -> set[str]:
    """Collect the top names of everything a file imports."""
    imported = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    return imported


def test_the_domain_imports_nothing_but_pure_libraries() -> None:
    pure = [*(ROOT / "src/holdfast/domain").rglob("*.py"), ROOT / "src/holdfast/errors.py"]
    allowed = PURE_STANDARD | PURE_LIBRARIES
    assert {where(path): imports(path) - allowed for path in pure if imports(path) - allowed} == {}


def test_names_are_looked_up_in_one_place() -> None:
    """What looks up another way waits for a silent name server as long as the system does."""
    ways = re.compile(r"\b(getaddrinfo|gethostbyname|create_connection)\(")
    found = [path.relative_to(ROOT / "src/holdfast") for path in SOURCES if ways.search(path.read_text())]
    assert [str(path) for path in found] == ["resolver.py"]


def is_stub(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node) for node in function.body)


def test_nothing_is_left_to_be_done() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    perhaps = those_with(SOURCES + TASKS, marks.pattern)
    marked = [f"{where(path)}: {said}" for path in perhaps for said in comments(path) if marks.search(said)]
    stubs = [f"{where(path)}:{f.name}" for path in SOURCES + TASKS for f in functions(path) if f.is_stub]
    assert marked + stubs == []


def test_no_merge_is_left_half_done() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.*")]
    marker = re.compile(rb"^(<{7} |>{7} )", re.MULTILINE)
    assert [str(path) for path in [*pages, *SOURCES, *TASKS] if marker.search(path.read_bytes())] == []


def test_what_is_dispatched_on_is_dispatched_on_in_full() -> None:
    """A member nobody thought of must not fall through: the last case is ``assert_never``, which mypy checks."""
    loose = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in those_with(SOURCES, r"\bmatch ")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Match) and not _is_over_numbers(node) and "assert_never" not in _last_case(node)
    ]
    assert loose == []


def _is_over_numbers(node: ast.Match) -> bool:
    first = node.cases[0].pattern
    return isinstance(first, ast.MatchValue) and isinstance(first.value, ast.Constant)


def _last_case(node: ast.Match) -> str:
    last = node.cases[-1]
    return ast.unparse(last.body[0]) if isinstance(last.pattern, ast.MatchAs) and last.pattern.name is None else ""
