"""Says of any workload that nothing is started at present, where it would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.ports.catalogue import CatalogueStore


def paused_lines(store: CatalogueStore, *, ended: bool, headline: str = "") -> Sequence[str]:
    """Say why nothing is started, if so.

    Args:
        store: Knows whether there is a pause.
        ended: Whether the workload has ended, and so waits for nothing.
        headline: What is said of it anyway; this is not said twice.
    """
    pause = None if ended else store.paused()
    if pause is None or pause.in_words() in headline:
        return ()
    return (f"In this database {pause.in_words()}.",)
