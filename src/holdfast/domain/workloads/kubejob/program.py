"""The program that stands in for a pod on a machine without pods; ``$(NAME)`` is expanded as Kubernetes does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.domain.resources import Resources

DEFAULT_GRACE_S = 30.0
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of a program's environment."""

    name: str
    value: str
    """May refer to variables before it."""
    told: bool = False
    """Whether ``value`` names a variable each pod is given about itself, instead of being text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One local process in place of a pod."""

    container: str = "main"
    command: tuple[str, ...] = ()
    """May refer to every variable, and to those each pod is given."""
    env: tuple[Variable, ...] = ()
    """In order; the last of equal names counts."""
    working_dir: str | None = None
    resources: Resources = Resources()
    """What it asks for when placed."""
    memory_limit: int = 0
    """Bytes it is ended above; 0 is no limit."""
    grace_s: float = DEFAULT_GRACE_S
    deadline_s: float | None = None
    """From the start of each program."""
    node_selector: Mapping[str, str] = field(default_factory=dict)

    def shown_env(self) -> dict[str, str]:
        """Return its environment as written, for people."""
        return {one.name: f"$({one.value})" if one.told else one.value for one in self.env}

    def for_pod(self, told: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return command and environment in a pod given these variables; its own win."""
        own: dict[str, str] = {}
        for one in self.env:
            own[one.name] = told.get(one.value, "") if one.told else _expanded(one.value, own)
        env = {**told, **own}
        return tuple(_expanded(word, env) for word in self.command), env

    def memory_limit_of(self, asked: int) -> int:
        """Return its limit in bytes, raised in proportion when a policy lets the memory it asks for grow."""
        if asked <= self.resources.memory or not self.resources.memory:
            return self.memory_limit
        return self.memory_limit * asked // self.resources.memory


def _expanded(text: str, env: Mapping[str, str]) -> str:
    """Replace ``$(NAME)``: an unknown name stays as written, ``$$`` is a dollar."""
    if "$" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else env.get(name, match[0])

    return _REFERENCE.sub(value, text)
