"""Finds what requests name by ids: projects, images and resource groups have only names, of which ids are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.record import Struct
from holdfast.domain.sessions.model import named_id
from holdfast.domain.terms.projects import DEFAULT_GROUP, Domain
from holdfast.errors import NotFound
from holdfast.ports import entries

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from holdfast.domain.job import Queue
    from holdfast.domain.terms.projects import Image, ResourceGroup
    from holdfast.ports.catalogue import Catalogue

PROJECT, IMAGE, RESOURCE_GROUP, USER, DOMAIN_KIND = "project", "image", "resource-group", "user", "domain"


class Directory(Struct, frozen=True):
    """What can be named by ids, as of a catalogue."""

    catalogue: Catalogue
    users: Collection[str] = ()
    """The names of the users who are known."""

    @property
    def projects(self) -> Mapping[str, Queue]:
        """The projects, which are the queues, by name."""
        return self.catalogue.queues

    @property
    def domains(self) -> Collection[str]:
        """The names of the domains."""
        return self.catalogue.of(entries.DOMAIN).keys()

    @property
    def images(self) -> Mapping[str, Image]:
        """The images, by name."""
        return self.catalogue.of(entries.IMAGE)

    @property
    def groups(self) -> Mapping[str, ResourceGroup]:
        """The resource groups, by name."""
        return self.catalogue.of(entries.RESOURCE_GROUP)

    def project(self, id_: str) -> Queue:
        """Find a project.

        Raises:
            NotFound: There is none.
        """
        return self.projects[_name_of(PROJECT, id_, self.projects)]

    def domain(self, name: str) -> Domain:
        """Return a domain; one that was deleted has no defaults."""
        return self.catalogue.of(entries.DOMAIN).get(name) or Domain(name)

    def image(self, id_: str) -> Image:
        """Find an image.

        Raises:
            NotFound: There is none.
        """
        return self.images[_name_of(IMAGE, id_, self.images)]

    def group(self, id_: str | None, name: str | None) -> ResourceGroup:
        """Find a resource group by its id or name; without either it is the default one.

        Raises:
            NotFound: There is none.
        """
        if id_ is not None:
            name = _name_of(RESOURCE_GROUP, id_, self.groups)
        group = self.groups.get(name or DEFAULT_GROUP)
        if group is None:
            msg = f"there is no resource group {name!r}"
            raise NotFound(msg)
        return group


def _name_of(kind: str, id_: str, names: Iterable[str]) -> str:
    for name in names:
        if named_id(kind, name) == id_:
            return name
    msg = f"there is no {kind.replace('-', ' ')} {id_}"
    raise NotFound(msg)
