"""Names new Kubernetes objects that have ``generateName``: by that and five random characters."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.dialects.jobset import job, manifest
from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.dialects.documents import Document
    from holdfast.ports.clock import Ids

_KINDS = ((job.API_VERSION, "Job"), (manifest.API_VERSION, "JobSet"))
_RANDOM = 5
_LONGEST = 63 - _RANDOM
"""Length before the random characters; the rest is cut off, as Kubernetes does."""


def with_names(documents: Sequence[Document], ids: Ids, key: str | None = None) -> list[Document]:
    """Name the objects that have ``generateName`` instead of a name, also those in ``items``.

    Args:
        documents: The objects to create.
        ids: The source of randomness.
        key: The idempotency key; objects sent again with it get the same names.
    """
    return [_with_name(document, ids, f"{key}/{place}" if key else "") for place, document in enumerate(documents)]


def _with_name(document: Document, ids: Ids, key: str) -> Document:
    items = document.value.get("items")
    if isinstance(items, list):
        items_named = [_named(item, ids, f"{key}/{place}" if key else "") for place, item in enumerate(items)]
        return document if items_named == items else evolve(document, value={**document.value, "items": items_named})
    value = _named(document.value, ids, key)
    return document if value is document.value else evolve(document, value=value)


def _named(value: Any, ids: Ids, key: str) -> Any:  # noqa: ANN401 - an item may be anything
    if not isinstance(value, Mapping) or (value.get("apiVersion"), value.get("kind")) not in _KINDS:
        return value
    metadata = value.get("metadata")
    begin = metadata.get("generateName") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(begin, str) or not begin or metadata.get("name"):
        return value
    random = hashlib.sha256(key.encode()).hexdigest() if key else ids.new()
    return {**value, "metadata": {**metadata, "name": begin[:_LONGEST] + random[-_RANDOM:]}}
