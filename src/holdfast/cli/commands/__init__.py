"""All commands, one file each or a few that belong together, in the order the overview lists them.

A command's file is imported only when the command is called, so that none pays for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.cli.command import Command

NAMES = (
    *("run", "submit"),
    *(
        "get",
        "describe",
        "attempts",
        "logs",
        "events",
        "why",
        "summary",
        "report",
        "top",
        "wait",
        "categories",
        "notify",
    ),
    *("cancel", "hold", "release", "retry", "preempt", "reprioritize", "rerun", "suspend", "resume", "restart"),
    *("up", "down", "apply", "create", "update", "delete", "cordon", "drain", "uncordon"),
    *("login", "context", "token", "db", "doctor", "service", "armada", "bai", "mcp", "man", "version"),
)
_FILES = {
    **dict.fromkeys(("cancel", "hold", "release", "retry"), "steering.steer"),
    **dict.fromkeys(("suspend", "resume"), "steering.suspend"),
    **{name: f"steering.{name}" for name in ("rerun", "restart", "preempt", "reprioritize")},
    **dict.fromkeys(("cordon", "drain", "uncordon"), "operate.drain"),
    **{name: f"operate.{name}" for name in ("up", "down", "token", "login", "context", "db", "doctor", "service")},
    **{name: f"operate.{name}" for name in ("armada", "bai", "mcp", "man", "version")},
}
"""The modules of commands that are not in a file of their own name."""


def command(name: str) -> Command[Any]:
    """Return the command of this name."""
    module = import_module(f"holdfast.cli.commands.{_FILES.get(name, name)}")
    found_command: Command[Any] = getattr(module, name.upper())
    return found_command


def commands() -> list[Command[Any]]:
    """Return all commands."""
    return [command(name) for name in NAMES]
