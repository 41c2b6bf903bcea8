"""The places that are always drawn from, whatever changed lately: a fault there is dear, and shows late or never.

Each is a module or, after a colon, a function or class of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.mutate.mutants import Mutant

_EXACTLY_ONCE = (
    "app/leadership.py:Leadership",
    "controller/controller.py:Controller._commit",
    "controller/controller.py:Controller.answer",
    "controller/observations.py:Observations",
    "controller/publisher.py:Publisher.publish",
    "domain/policy/decide.py:_counted",
    "domain/policy/decide.py:_granted",
    "engines/process/shim/journal.py",
    "engines/process/shim/record.py:Record",
    "engines/process/shim/recovery.py",
    "engines/process/shim/runs.py:Runs",
    "executor/executor.py:Executor",
    "storage/sql/admission.py",
    "storage/sql/controller.py:SqlControllerStore.commit",
    "storage/sql/controller.py:SqlControllerStore.lead",
    "storage/sql/submission.py",
)
_RIGHTS_AND_SECRETS = (
    "api/backendai/signature.py",
    "api/http/serving/gates.py",
    "app/data/trust.py",
    "app/entrance/accounts.py",
    "app/entrance/visitors.py",
    "app/entrance/oidc.py",
    "domain/access/claims.py",
    "domain/access/group.py",
    "domain/rights.py",
    "service/access/tokens.py",
    "service/admission/secrets.py",
    "service/operations/seeing.py",
    "storage/secrets.py",
    "storage/sql/catalogue/kinds.py",
    "storage/sql/rows/conditions.py",
    "wire/backendai/signatures.py",
)
_BOUNDS_OF_INPUT = (
    "api/budget.py",
    "api/connect/compression.py",
    "api/entries.py",
    "app/connections.py",
    "domain/workloads/preparing.py:path_problem",
    "notify/guard.py",
    "service/admission/archives.py",
    "service/admission/limits.py",
)
PLACES = tuple(f"src/holdfast/{place}" for place in (*_EXACTLY_ONCE, *_RIGHTS_AND_SECRETS, *_BOUNDS_OF_INPUT))


def is_in(mutant: Mutant, places: tuple[str, ...]) -> bool:
    """Whether a mutant is in one of some places."""
    where = f"{mutant.place.file}:{mutant.place.where}."
    return where.startswith(tuple(f"{place}{end}" for place in places for end in ":."))
