"""How operations ask whether who calls may do what they do.

Each operation says with ``asks`` what it takes. That refuses whoever may do that to nothing; an operation on somebody's
work also asks about this piece of work, with ``require``.
"""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, AuditEntry
from holdfast.domain.rights import refusal_of
from holdfast.errors import Forbidden, Refused
from holdfast.service.access.repeats import record_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.audit import Caller, Subject
    from holdfast.domain.rights import Refusal
    from holdfast.ports.events import AuditStore

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
ASKED = "asks"
"""The attribute of an operation that names its right and its kind."""
ACTS = {
    Right.SUBMIT: Act.CREATE,
    Right.WATCH: Act.READ,
    Right.LOGS: Act.READ,
    Right.CANCEL: Act.CANCEL,
    Right.PREEMPT: Act.PREEMPT,
    Right.REPRIORITIZE: Act.REPRIORITIZE,
    Right.CHANGE: Act.UPDATE,
}
"""What the audit log says somebody was refused."""


def asks(
    right: Right, kind: Subject
) -> Callable[[Callable[Concatenate[S, Caller, P], R]], Callable[Concatenate[S, Caller, P], R]]:
    """Have an operation refuse who may not do so to anything of a kind.

    Raises:
        Forbidden: Who calls has no such right.
        Refused: Nobody could run what they submit.
    """

    def asking(operation: Callable[Concatenate[S, Caller, P], R]) -> Callable[Concatenate[S, Caller, P], R]:
        def asked(self: S, caller: Caller, /, *args: P.args, **given: P.kwargs) -> R:
            refused = refusal_of(caller.principal, right, kind)
            if refused is not None:
                raise forbidden(_store_of(self), caller, ACTS[right], kind, "", refused)
            if right is Right.SUBMIT and caller.unable:
                raise Refused(caller.unable, hint="name an account for it in the server's HOLDFAST_ACCOUNTS")
            return operation(self, caller, *args, **given)

        setattr(asked, ASKED, (right, kind))
        return update_wrapper(asked, operation)

    return asking


def forbidden(store: AuditStore, caller: Caller, act: Act, kind: Subject, name: str, refused: Refusal) -> Forbidden:
    """Write a refusal to the audit log, and return it as an error."""
    error = Forbidden(refused.message, hint=refused.hint)
    record_once(store, AuditEntry(caller, act, kind, name, outcome=error.code, detail=error.message))
    return error


def _store_of(operations: Any) -> AuditStore:  # noqa: ANN401 - they have a store, or a backend with one
    store: AuditStore = operations.store if hasattr(operations, "store") else operations.backend.store
    return store
