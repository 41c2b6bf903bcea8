"""What every store checks alike before rights are given: who gives them, and that no token loses its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.rights import refusal_of
from holdfast.errors import AlreadyExists, Forbidden

if TYPE_CHECKING:
    from holdfast.domain.access.tokens import ApiToken
    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Queue


def require_right_to_permissions(caller: Caller | None, before: Queue | None, after: Queue | None) -> None:
    """Check that who changes or drops the permissions of a queue may give rights at all.

    Who creates a queue may say who works in it, but gives nobody the logs of others: work of an earlier queue of that
    name may still be there.

    Raises:
        Forbidden: It may not.
    """
    old, new = (() if item is None else item.permissions for item in (before, after))
    free = old == new or (before is None and not any(Right.LOGS in item.verbs for item in new))
    refused = None if caller is None or free else refusal_of(caller.principal, Right.CHANGE, Subject.SETTINGS)
    if caller is not None and refused is not None:
        queue = before or after
        name = queue.name if queue else ""
        message = f"{caller.actor} may not change the permissions of queue {name}: that takes the role admin"
        raise Forbidden(message, hint=refused.hint)


def require_right_to_delete(caller: Caller | None, queue: Queue, creator: str | None) -> None:
    """Check that who deletes a queue may drop its permissions: an admin, or who created it and chose them.

    Not even its creator where logs are given away in it: an admin has changed it since.

    Raises:
        Forbidden: It may not.
    """
    gives_logs = any(Right.LOGS in permission.verbs for permission in queue.permissions)
    if caller is None or caller.principal.name != creator or gives_logs:
        require_right_to_permissions(caller, queue, None)


def require_free_token(existing: ApiToken | None, now: float) -> None:
    """Check that no token of a name is in use.

    Raises:
        AlreadyExists: One is.
    """
    if existing is not None and not existing.over(now):
        message = f"token {existing.name!r} exists already"
        raise AlreadyExists(message, hint=f"use another name, or: holdfast token revoke {existing.name}")
