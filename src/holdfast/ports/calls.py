"""What runs calls that were sent pickled: a Python of the operator's choice, in the job's process only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.access import Principal


class CallRunner(Protocol):
    """The Python that reads and makes calls."""

    @property
    def command(self) -> Sequence[str]:
        """The program that makes the call of a file, whose name follows; with ``--install``, it installs packages."""

    @property
    def index(self) -> str:
        """Where packages come from: a URL, a folder, or nothing for where the installer is set to look."""

    @property
    def installer(self) -> str:
        """What installs them: ``uv``, ``pip``, or nothing for what the machine has."""

    @property
    def limit_s(self) -> float:
        """How long that may take."""

    def refusal(self, principal: Principal) -> str | None:
        """Say why it cannot run for somebody, if so; it may take a while the first time."""
