"""Writes who may do what from the table in ``domain.rights``."""

from __future__ import annotations

from holdfast.domain.access.people import ROLES
from holdfast.domain.audit import Subject
from holdfast.domain.rights import TABLE, WORK, Reach
from holdfast.domain.terms.kinds import KINDS
from tools.docs.source import table

_SHOWN = {Reach.NONE: "-", Reach.OWN: "own", Reach.ALL: "all"}
_WORDS = {
    Subject.JOB: ", ".join(f"{kind.noun}s" for kind in KINDS.values()),
    Subject.AUDIT: "the audit log",
    Subject.SERVER: "metrics",
}


def rights() -> str:
    """Print the matrix of roles, rights and kinds; kinds with the same rights share a row."""
    head = ["What", "Right", *(f"`{role}`" for role in ROLES)]
    rows: dict[tuple[str, ...], list[str]] = {}
    for kind, rights_of in TABLE.items():
        for right, reaches in rights_of.items() if kind not in WORK[1:] else ():
            cells = (f"`{right}`", *map(_SHOWN.__getitem__, reaches))
            rows.setdefault(cells, []).append(_WORDS.get(kind, kind.replace("-", " ")))
    return table(head, [[", ".join(kinds), *cells] for cells, kinds in rows.items()])
