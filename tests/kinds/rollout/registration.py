"""The line of each table that makes the kind known, as if it stood there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.api.http.endpoints.endpoint import MODULES
from holdfast.compiled import workloads
from holdfast.controller.workloads.kinds import RULES
from holdfast.domain.terms.kinds import KINDS
from tests.kinds.rollout.model import Rollout, needs_of
from tests.kinds.rollout.rules import ROLLOUTS
from tests.kinds.rollout.words import ROLLOUT

if TYPE_CHECKING:
    from collections.abc import Callable

VIEWS = "tests.kinds.rollout.views"


def register(put: Callable[[dict[str, Any], str, object], None]) -> None:
    """Put it in its place in the table of words, of records, of rules and of addresses."""
    put(KINDS, ROLLOUT.name, ROLLOUT)
    put(workloads.KINDS, ROLLOUT.name, workloads.Stored(Rollout, needs=needs_of))
    put(RULES, ROLLOUT.name, ROLLOUTS)
    put(MODULES, ROLLOUT.plural, (VIEWS,))
