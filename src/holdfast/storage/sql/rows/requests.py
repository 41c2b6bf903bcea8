"""Converts requests to rows and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.compiled.records import dump_json, load_json, storable
from holdfast.ports.requests import Request, RequestKind
from holdfast.storage.sql.codec import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

_KINDS = Vocabulary(RequestKind)


def request_row(request: Request) -> dict[str, Any]:
    """Return a request's columns without its id."""
    return {
        "kind": request.kind.value,
        "job_ids": dump_json(request.targets),
        "created_at": request.created_at,
        "actor": storable(request.actor),
        "reason": storable(request.reason),
        "payload": request.payload,
    }


def read_request(row: Sequence[Any]) -> Request:
    """Build a request from its row."""
    number, kind, job_ids, created_at, actor, reason, payload = row
    return Request(_KINDS[kind], tuple(load_json(job_ids)), created_at, actor, reason, number, payload)
