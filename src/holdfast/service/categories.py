"""Edits and reads failure categories; a change applies to failures classified after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.audit import Act, Subject
from holdfast.ports import presence
from holdfast.service.audit import audited, put_act
from holdfast.service.naming import not_found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.category import FailureCategory
    from holdfast.ports.store import Store


@dataclass(frozen=True, slots=True)
class Categories:
    """The failure categories."""

    store: Store

    def list(self) -> Sequence[FailureCategory]:
        """List all, in order of evaluation."""
        return self.store.catalogue().categories

    def get(self, name: str) -> FailureCategory:
        """Read a category.

        Raises:
            NotFound: There is none of that name.
        """
        found = {category.name: category for category in self.store.catalogue().categories}
        if name not in found:
            raise not_found(name, found, "failure category")
        return found[name]

    def put(
        self, category: FailureCategory, *, create: bool | None = None, by: Caller | None = None, dry_run: bool = False
    ) -> FailureCategory:
        """Store a category, unless it is a dry run; ``create`` true: must be new, false: must exist, ``None``: either.

        Raises:
            AlreadyExists: It exists, and must be new.
            NotFound: It does not, and must exist.
        """
        with audited(self.store, None if dry_run else by, put_act(create=create), Subject.CATEGORY, category.name):
            if dry_run:
                known = {one.name for one in self.list()}
                presence.require_presence(presence.CATEGORY, category.name, known=known, create=create)
            else:
                self.store.put_category(category, create=create, by=by)
        return category

    def delete(self, name: str, *, by: Caller | None = None) -> None:
        """Delete a category; failures that were given it keep it.

        Raises:
            NotFound: There is none of that name.
        """
        with audited(self.store, by, Act.DELETE, Subject.CATEGORY, name):
            self.get(name)
            self.store.delete_category(name, by=by)
