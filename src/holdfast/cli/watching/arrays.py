"""Watches an array until it has ended, and tells how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli import exit_codes
from holdfast.cli.render.arrays import progress
from holdfast.cli.watching.live import live_line
from holdfast.cli.watching.pacing import Pace
from holdfast.cli.watching.progress import waited
from holdfast.domain.terms.kinds import ARRAY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.context import Cli
    from holdfast.client import Client
    from holdfast.wire.arrays import ArrayView

_TELL_EVERY_S = 5.0


def watch_array(client: Client, reference: str, cli: Cli) -> ArrayView:
    """Tell how far an array is until it has ended, in a live line or every few seconds; returns it as it is then."""
    pace, told, began = Pace(cli.sleep, first_s=0.05), "", cli.now()
    told_at = began
    with live_line(cli) as (live, above):
        while (array := client.array(reference)).state not in ARRAY.ended:
            line = progress(array)
            live.draw(f"{array.name}: {line}, {waited(cli.now() - began)}")
            if not live.able and line != told and cli.now() - told_at >= _TELL_EVERY_S:
                above.say(f"{array.name}: {line}")
                told, told_at = line, cli.now()
            pace.rest()
    return array


def wait_for_arrays(client: Client, references: Sequence[str], timeout_s: float | None, cli: Cli) -> int:
    """Wait until all arrays have ended; returns the exit code and says how they ended."""
    try:
        ended = wait_until_ended(client, references, timeout_s, cli)
    except KeyboardInterrupt:
        cli.say("no longer waiting: the arrays go on and were not cancelled")
        cli.note_unserved("arrays go on", "holdfast wait")
        return exit_codes.INTERRUPTED
    left = len(set(references)) - len(ended)
    if left:
        cli.say(f"timed out: {left} of {len(references)} arrays have not ended yet")
        return exit_codes.TIMED_OUT
    for array in sorted(ended, key=lambda one: one.state == ARRAY.success):
        cli.say(f"{array.name}: {array.state}: {array.reason or progress(array)}")
    return exit_codes.OK if all(array.state == ARRAY.success for array in ended) else exit_codes.FAILED


def wait_until_ended(
    client: Client, references: Sequence[str], timeout_s: float | None, cli: Cli
) -> Sequence[ArrayView]:
    """Wait until arrays have ended, at most so long; returns those that have."""
    pace, began = Pace(cli.sleep), cli.now()
    ended: dict[str, ArrayView] = {}
    with live_line(cli) as (live, _):
        while True:
            found = {name: client.array(name) for name in references if name not in ended}
            ended |= {name: array for name, array in found.items() if array.state in ARRAY.ended}
            left_s = None if timeout_s is None else began + timeout_s - cli.now()
            if len(ended) == len(set(references)) or (left_s is not None and left_s <= 0):
                return list(ended.values())
            lines = [f"{one.name}: {progress(one)}" for one in found.values() if one.state not in ARRAY.ended]
            live.draw("; ".join([*lines, waited(cli.now() - began)]))
            pace.rest(at_most_s=left_s)
