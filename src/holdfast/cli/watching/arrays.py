"""Watches an array until it has ended, and tells how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.render.arrays import progress
from holdfast.cli.watching.live import live_line
from holdfast.cli.watching.pacing import Polling
from holdfast.cli.watching.progress import waited
from holdfast.domain.terms.kinds import ARRAY

if TYPE_CHECKING:
    from holdfast.cli.context import Cli
    from holdfast.cli.watching.interrupts import Interrupts
    from holdfast.client import Client
    from holdfast.wire.arrays import ArrayView

_TELL_EVERY_S = 5.0


def watch_array(client: Client, reference: str, interrupts: Interrupts, cli: Cli) -> ArrayView:
    """Tell how far an array is until it has ended, in a live line or every few seconds; returns it as it is then.

    It is cancelled where whoever watches asks for that.
    """
    pace, last_line, began = Polling(cli.sleep, first_s=0.05), "", cli.now()
    told_at = began
    with live_line(cli) as (live, above):
        while (array := client.array(reference)).state not in ARRAY.ended:
            if interrupts.wants_cancel():
                client.cancel_array(reference, reason=interrupts.reason)
            line = progress(array)
            live.draw(f"{array.name}: {line}, {waited(cli.now() - began)}")
            if not live.able and line != last_line and cli.now() - told_at >= _TELL_EVERY_S:
                above.say(f"{array.name}: {line}")
                last_line, told_at = line, cli.now()
            pace.rest()
    return array
