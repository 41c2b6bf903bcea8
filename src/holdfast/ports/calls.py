"""Runs pickled calls, with a Python of the operator's choice, and only in the job's process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.access import Principal


class CallRunner(Protocol):
    """The Python that unpickles and runs calls."""

    @property
    def command(self) -> Sequence[str]:
        """The program that runs the call in a file, whose name follows; with ``--install``, it installs packages."""

    @property
    def index(self) -> str:
        """Where packages come from: a URL, a folder, or empty for the installer's default."""

    @property
    def installer(self) -> str:
        """The installer: ``uv``, ``pip``, or empty for the one that the machine has."""

    @property
    def limit_s(self) -> float:
        """How long installing may take."""

    def refusal(self, principal: Principal) -> str | None:
        """Return why it cannot run for a principal, if so; may take a while the first time."""
