"""What only tests call is no part of the product: every module is imported from a way in, every name is used."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
SHIM = "holdfast.engines.process.shim"
COMMANDS = "holdfast.cli.commands"
MIGRATIONS = "holdfast.storage.sql.migrations"
WAYS_IN = (
    "holdfast",
    "holdfast.fluster",
    "holdfast.fluster.actor",
    "holdfast.fluster.client",
    "holdfast.cli.main",
    "holdfast.integrations.joblib",
    "holdfast.integrations.mlflow",
    "holdfast.integrations.submitit",
    "holdfast.sdk.calls.entrypoint",
    "holdfast.sdk.calls.worker",
    "hydra_plugins.holdfast_launcher",
    f"{SHIM}.__main__",
    f"{SHIM}.removal.__main__",
    f"{MIGRATIONS}.env",
    "holdfast.simulation",
)
LOADED_BY_NAME = (
    COMMANDS,
    f"{COMMANDS}.operate",
    f"{COMMANDS}.steering",
    f"{MIGRATIONS}.versions",
    "holdfast.api.http.endpoints",
)
PYTHON_API = (
    "holdfast.client",
    "holdfast.fluster",
    "holdfast.integrations",
    "holdfast.sdk",
    "holdfast.simulation",
    "hydra_plugins",
)
"""For programs: whoever imports it may use all of it."""
CALLED_BY_LIBRARIES = {
    "holdfast.api.backendai.graphql.limits",
    "holdfast.api.backendai.graphql.schema",
    "holdfast.api.http.serving.metrics",
    "holdfast.app.connections",
    "holdfast.cli.main",
    "holdfast.notify.mail",
}
"""Their classes override methods of a library's."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
OWN_DECORATORS = re.compile(
    r"(cached_)?property|cache|lru_cache.*|\w+method|dataclass.*|contextmanager|overload|.*\.setter"
)


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(SRC.rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


@cache
def read_in(module: str) -> frozenset[str]:
    """Return what a module reads by name; what a package only passes on is not among it."""
    return frozenset(node.id for node in ast.walk(tree(module)) if isinstance(node, ast.Name))


def source_of(module: str, node: ast.ImportFrom) -> str:
    """Return the full name of what a module imports from."""
    if node.level:
        package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
        above = package.split(".")[: len(package.split(".")) + 1 - node.level]
        return ".".join([*above, *([node.module] if node.module else [])])
    # The shim runs by its path, where its package is at the top.
    return re.sub(r"^shim\b", SHIM, node.module or "")


def imported_by(module: str) -> Iterator[str]:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = source_of(module, node)
            yield from (source, *(f"{source}.{alias.name}" for alias in node.names))


def documented() -> Iterator[tuple[str, str]]:
    """List what documentation imports, and what its generator prints, as modules and names."""
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tools/docs/*.py")):
        text = page.read_text()
        for source, names in re.findall(r"from (holdfast[\w.]*) import ([\w, ]+)", text):
            for name in names.split(", "):
                yield source, name
                yield from ((f"{source}.{name}", each) for each in re.findall(rf"\b{name}\.(\w+)", text))


def test_every_module_is_imported_from_a_way_in() -> None:
    found: set[str] = set()
    by_name = [module for module in MODULES if module.rpartition(".")[0] in LOADED_BY_NAME]
    left = [*WAYS_IN, *by_name, *(source for source, _ in documented())]
    while left:
        module = left.pop()
        if module in MODULES and module not in found:
            found.add(module)
            left += [module.rpartition(".")[0], *imported_by(module)]
    left_over = sorted(module for module in MODULES.keys() - found if "._generated." not in module)
    assert left_over == [], "only tests use these: move them there, or to tools"


class Uses:
    """Which names are used, where, and within which definitions."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, str], list[tuple[ast.AST, ...]]] = {}
        """By module and name: the definitions around each use."""
        self.attributes: dict[str, list[tuple[ast.AST, ...]]] = {}
        self.imported: dict[str, set[str]] = {}
        """By name: from which modules it is imported, other than by packages that only pass it on."""
        for module in MODULES:
            self._read(module, tree(module), ())
        for source, name in documented():
            self.imported.setdefault(name, set()).add(source)

    def _read(self, module: str, node: ast.AST, within: tuple[ast.AST, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Store):
                self.names.setdefault((module, child.id), []).append(within)
            elif isinstance(child, ast.Attribute):
                self.attributes.setdefault(child.attr, []).append(within)
            elif isinstance(child, ast.ImportFrom):
                for alias in child.names:
                    if MODULES[module].name != "__init__.py" or alias.name in read_in(module):
                        self.imported.setdefault(alias.name, set()).add(source_of(module, child))
            self._read(module, child, (*within, child) if isinstance(child, DEFINITIONS) else within)

    def of_global(self, module: str, name: str, node: ast.AST) -> bool:
        used = any(node not in within for within in self.names.get((module, name), ()))
        sources = self.imported.get(name, set())
        return (
            used
            or any(module == source or module.startswith(f"{source}.") for source in sources)
            or self.of_method(name, node)
        )

    def of_method(self, name: str, node: ast.AST) -> bool:
        if name.startswith("__"):
            return True
        return any(node not in within for within in self.attributes.get(name, ()))


def definitions(module: str) -> Iterator[tuple[str, ast.stmt]]:
    """List a module's own names: functions, classes and constants."""
    for node in tree(module).body:
        if isinstance(node, DEFINITIONS):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node


def is_registered(node: ast.AST) -> bool:
    """Whether a decorator hands it to somebody: a route, a hook."""
    decorators = node.decorator_list if isinstance(node, DEFINITIONS) else []
    return any(not OWN_DECORATORS.fullmatch(ast.unparse(each)) for each in decorators)


def is_command(module: str, name: str) -> bool:
    """Whether it is what a file of a command is loaded for."""
    return module.startswith(f"{COMMANDS}.") and module.rpartition(".")[2] == name.lower()


def unused(module: str, uses: Uses) -> Iterator[str]:
    for name, node in definitions(module):
        if name.startswith("__") or is_registered(node) or is_command(module, name):
            continue
        if not uses.of_global(module, name, node):
            yield name
        if isinstance(node, ast.ClassDef) and module not in CALLED_BY_LIBRARIES:
            methods = [part for part in node.body if isinstance(part, DEFINITIONS) and not is_registered(part)]
            yield from (f"{name}.{each.name}" for each in methods if not uses.of_method(each.name, each))


def test_every_name_is_used_by_the_product_itself() -> None:
    uses = Uses()
    checked = [module for module in MODULES if not module.startswith((*PYTHON_API, MIGRATIONS))]
    assert [f"{module}.{name}" for module in checked for name in unused(module, uses)] == [], "only tests use these"
