"""What the server does with the files of runs, which an account can replace by anything, it does in few named places.

A call that is in no table is either with the rights of the run's account (``account.acting``, ``removal``), and gets a
line here and in the threat model, or it does not belong there.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINE = Path(__file__).resolve().parents[2] / "src" / "holdfast" / "engines" / "process"
CALLS = {
    *("chmod", "chown", "copy", "copyfile", "copytree", "fchmod", "fchown", "fwalk", "glob", "hardlink_to", "iterdir"),
    *("lchown", "link", "listdir", "makedirs", "mkdir", "mkfifo", "mknod", "move", "open", "read_bytes", "read_text"),
    *("remove", "removedirs", "rename", "renames", "replace", "rglob", "rmdir", "rmtree", "scandir", "setxattr"),
    *("symlink", "symlink_to", "touch", "truncate", "unlink", "utime", "walk", "write_bytes", "write_text"),
}
OUR_OWN = {
    *("client", "shim/__main__", "shim/cgroups", "shim/journal", "shim/libc", "shim/loop", "shim/pool"),
    *("shim/processes", "shim/record", "shim/supervisor/process", "shim/supervisor/surroundings"),
}
"""Modules that open and delete only what no account can change: the shim's own files, /proc, control groups."""
AS_THE_ACCOUNT = {
    "shim/files": {"open_plain"},
    "shim/supervisor/inputs": {"_unpack", "_write"},
    "shim/supervisor/launch": {"_begin_again", "_open_log"},
    "shim/supervisor/notice": {"_give"},
    "shim/supervisor/preparing": {"_leave", "forget"},
    "shim/supervisor/scripts": {"_head"},
    "shim/removal/folder": {"_is_deleted", "_opened", "_seal_not", "_some", "_take_up", "set_aside"},
}
WITH_OUR_RIGHTS = {
    "engine": {"_open_directory": "the folders above those of all jobs, which are ours"},
    "files": {"_opened": "a thread cannot become an account: reads plain files of the run's owner alone"},
    "usage": {"_listed": "a thread, too: it counts sizes, and reads nothing"},
    "shim/account": {"give": "what was just made in a folder of ours"},
    "shim/removal/folder": {
        **dict.fromkeys(("_discard", "_owner_of_runs", "_delete_job"), "the folder of a job is ours"),
        "_delete_run": "what is directly in the folder of a job, empty by then",
    },
    "shim/supervisor/inputs": {"opened": "what was sent along is kept in files of ours"},
    "shim/supervisor/launch": {
        **dict.fromkeys(("_make", "_make_job"), "the folder of a job is ours"),
        "_take_over_checkpoints": "from one folder of ours to another, if the account owns them",
    },
    "shim/supervisor/leftovers": {"kill_in": "a control group"},
}


def calls(node: ast.AST, function: str = "") -> Iterator[tuple[str, str]]:
    """Find the calls that could be of a file, by the functions they are in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            owner, _, name = ast.unparse(child.func).rpartition(".")
            is_of_text = name == "replace" and owner != "os" and len(child.args) > 1
            if name in CALLS and not is_of_text:
                yield function, ast.unparse(child)
        yield from calls(child, child.name if isinstance(child, ast.FunctionDef) else function)


def test_only_named_places_of_the_engine_touch_files_each_for_a_reason() -> None:
    found: dict[str, dict[str, str]] = {}
    for path in sorted(ENGINE.rglob("*.py")):
        module = str(path.relative_to(ENGINE).with_suffix(""))
        if module not in OUR_OWN and (of := dict(calls(ast.parse(path.read_text())))):
            found[module] = of
    named = {
        module: AS_THE_ACCOUNT.get(module, set()) | {*WITH_OUR_RIGHTS.get(module, {})}
        for module in (*AS_THE_ACCOUNT, *WITH_OUR_RIGHTS)
    }
    unknown = [
        f"{module}.{function}: {call}"
        for module, of in found.items()
        for function, call in of.items()
        if function not in named.get(module, set())
    ]
    assert unknown == [], "use removal or acting, and say here with whose rights"
    gone = [f"{module}.{name}" for module, of in named.items() for name in sorted(of - {*found.get(module, {})})]
    assert gone == [], "take it out of the table"


def test_nobody_else_makes_paths_below_the_folders_of_runs() -> None:
    package = ENGINE.parents[1]
    made = [
        f"{path.relative_to(package)}:{node.lineno} {ast.unparse(node)}"
        for path in sorted(package.rglob("*.py"))
        if ENGINE not in path.parents
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.BinOp) and ast.unparse(node.left).endswith("directory.runs"))
        or (isinstance(node, ast.JoinedStr) and "directory.runs" in ast.unparse(node))
        or (
            isinstance(node, ast.Attribute)
            and ast.unparse(node.value).endswith("directory.runs")
            and node.attr != "name"
        )
    ]
    assert made == [], "hand directory.runs to the engine, and have that do it"
