"""Edits and reads failure categories; a change applies to failures classified after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain import failure_catalogue
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import Struct
from holdfast.errors import Conflict
from holdfast.ports import presence
from holdfast.service.access.asking import asks
from holdfast.service.naming import not_found
from holdfast.service.refusals import audited, put_act

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.category import FailureCategory
    from holdfast.ports.store import Store


class Categories(Struct, frozen=True):
    """The failure categories."""

    store: Store

    @asks(Right.WATCH, Subject.CATEGORY)
    def list(self, _caller: Caller) -> Sequence[FailureCategory]:
        """List all, in order of evaluation: those of a file, the operator's own, and built-in ones not replaced."""
        catalogue = self.store.catalogue()
        own = [*(catalogue.configured.categories if catalogue.configured else ()), *catalogue.categories]
        return [*own, *failure_catalogue.beside(own)]

    def _own(self) -> Sequence[FailureCategory]:
        return self.store.catalogue().categories

    @asks(Right.WATCH, Subject.CATEGORY)
    def submitters(self, _caller: Caller) -> Mapping[str, str]:
        """Say who first wrote each, by its name, where that is known."""
        kind = f"{presence.CATEGORY} "
        found = self.store.catalogue().submitters
        return {what.removeprefix(kind): who for what, who in found.items() if what.startswith(kind)}

    @asks(Right.WATCH, Subject.CATEGORY)
    def get(self, _caller: Caller, name: str) -> FailureCategory:
        """Read a category.

        Raises:
            NotFound: There is none of that name.
        """
        found = {category.name: category for category in self.list(_caller)}
        if name not in found:
            raise not_found(name, found, "failure category")
        return found[name]

    @asks(Right.CHANGE, Subject.CATEGORY)
    def put(
        self, caller: Caller, category: FailureCategory, *, create: bool | None = None, dry_run: bool = False
    ) -> FailureCategory:
        """Store a category, unless it is a dry run; ``create`` true: must be new, false: must exist, ``None``: either.

        Raises:
            AlreadyExists: It exists, and must be new.
            NotFound: It does not, and must exist.
        """
        with audited(self.store, None if dry_run else caller, put_act(create=create), Subject.CATEGORY, category.name):
            if dry_run:
                known = {one.name for one in self._own()}
                presence.require_presence(presence.CATEGORY, category.name, known=known, create=create)
            else:
                self.store.put_category(category, create=create, by=caller)
        return category

    @asks(Right.CHANGE, Subject.CATEGORY)
    def delete(self, caller: Caller, name: str) -> None:
        """Delete a category; failures that were given it keep it.

        Raises:
            NotFound: There is none of that name.
            Conflict: It is built in, or a configuration file's.
        """
        with audited(self.store, caller, Act.DELETE, Subject.CATEGORY, name):
            self.get(caller, name)
            self._require_own(name)
            self.store.delete_category(name, by=caller)

    def _require_own(self, name: str) -> None:
        catalogue = self.store.catalogue()
        configured = catalogue.configured
        if name in {category.name for category in catalogue.categories}:
            return
        if configured is not None and name in {category.name for category in configured.categories}:
            msg = f"failure category {name!r} is set by {configured.file}"
            raise Conflict(msg, hint="edit that file, which is read again when it changes")
        msg = f"failure category {name!r} is built in"
        raise Conflict(msg, hint="a category of that name of your own takes its place")
