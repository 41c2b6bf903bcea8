"""Writes and reads the rows of the logs of job sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.compiled.records import dump_json, load_json, record_of
from holdfast.domain.workloads.jobset.state import Event, SetDecision, SetLogEntry
from holdfast.errors import Internal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_FACTS: Mapping[str, type[SetDecision | Event]] = {"decision": SetDecision, "event": Event}
_FACT_OF = {kind: name for name, kind in _FACTS.items()}


def set_log_rows(entries: Iterable[SetLogEntry]) -> list[tuple[Any, ...]]:
    """Return the rows of entries in the logs of job sets without ``seq``."""
    return [(each.set_id, each.at, _FACT_OF[type(each.what)], dump_json(each.what)) for each in entries]


def read_set_log(row: Sequence[Any]) -> SetLogEntry:
    """Build an entry from its row.

    Raises:
        Internal: It is of a kind this version does not know.
    """
    seq, set_id, at, kind, body = row
    if kind not in _FACTS:
        message = f"the log of a job set holds {kind!r}, which this version of Holdfast does not know"
        raise Internal(message, hint="a newer Holdfast wrote it, or the database is damaged")
    return SetLogEntry(set_id=set_id, at=at, what=record_of(_FACTS[kind], load_json(body)), seq=seq)
