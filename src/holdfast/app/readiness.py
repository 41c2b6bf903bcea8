"""Whether a server can work, and whether it may accept anything, as its parts say at this moment.

A reason nearer to the cause comes before what follows from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from holdfast.app.data.ownership import Ownership
    from holdfast.app.embedded import Embedded
    from holdfast.app.telemetry import Telemetry
    from holdfast.domain.audit import Caller
    from holdfast.domain.configured import Configured

_START_AGAIN = (
    "nothing sent here would be kept; stop this server (holdfast down), repair its data directory, and start it again"
)


class Readiness:
    """Asks the parts of a server, which come to it one after the other."""

    def __init__(self, telemetry: Telemetry, ownership: Ownership) -> None:
        """Begin without loops, which is not ready."""
        self.telemetry = telemetry
        self._ownership = ownership
        self._embedded: Embedded | None = None

    def started(self, embedded: Embedded) -> None:
        """Ask the loops, too."""
        self._embedded = embedded

    def ready(self) -> str | None:
        """Say what keeps the server from working, if anything."""
        loops = self._embedded.trouble() if self._embedded is not None else None
        return self._ownership.trouble() or loops or self.telemetry.ready()

    def written(self) -> None:
        """Tell the loops that something may have been asked of them."""
        if self._embedded is not None:
            self._embedded.wake()

    def reload(self, caller: Caller) -> tuple[Configured, bool] | None:
        """Read the configuration file now; ``None`` if there is none. See ``Configuring.reload``."""
        return None if self._embedded is None else self._embedded.reload(caller)

    def refusal(self) -> Unavailable | None:
        """Say why nothing may be taken in, if so: what is stored here would be lost, or is another's to store."""
        trouble = self._ownership.trouble()
        if trouble is not None:
            return Unavailable(trouble, hint=_START_AGAIN)
        return self._embedded.refusal() if self._embedded is not None else None
