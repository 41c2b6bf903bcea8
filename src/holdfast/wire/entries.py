"""Wire models of operators' entries; ``spec`` is the native manifest's."""

from typing import Any, NamedTuple

from pydantic import Field

from holdfast.domain.terms.entries import CATEGORY, KEYPAIR, NOTIFIER, POLICY, QUEUE, EntryInfo
from holdfast.wire.base import Response, Timestamp
from holdfast.wire.problems import ProblemEntry


class EntryView(Response):
    """An entry of any kind."""

    name: str
    submitted_by: str = ""
    """Its creator; empty if unknown."""
    spec: dict[str, Any]
    """As in a manifest of its kind; secrets are named, never shown."""
    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious, such as an unreachable rule, or a limit on a resource that nobody has."""


class EntryPage(Response):
    """All entries of a kind, by name."""

    items: list[EntryView]


class PolicyView(EntryView):
    """The newest revision of a retry policy."""

    revision: int


class QueueView(EntryView):
    """A queue."""


class CategoryView(EntryView):
    """A failure category."""

    built_in: bool = False
    """Whether it belongs to the failure catalogue that comes with Holdfast."""


class NotifierView(EntryView):
    """A notifier."""


class KeyPairView(EntryView):
    """A keypair; nothing shows its secret."""

    created_at: Timestamp | None = None
    """``None`` in a dry run."""


class PolicyPage(Response):
    """All retry policies, by name."""

    items: list[PolicyView]


class QueuePage(Response):
    """All queues, by name."""

    items: list[QueueView]


class CategoryPage(Response):
    """All failure categories, in order of evaluation."""

    items: list[CategoryView]


class NotifierPage(Response):
    """All notifiers, by name."""

    items: list[NotifierView]


class KeyPairPage(Response):
    """All keypairs, by access key."""

    items: list[KeyPairView]


class EntryModels(NamedTuple):
    """The models of one kind of entry."""

    view: type[EntryView]
    page: type[Response]


_MODELS = {
    POLICY: EntryModels(PolicyView, PolicyPage),
    QUEUE: EntryModels(QueueView, QueuePage),
    CATEGORY: EntryModels(CategoryView, CategoryPage),
    NOTIFIER: EntryModels(NotifierView, NotifierPage),
    KEYPAIR: EntryModels(KeyPairView, KeyPairPage),
}


def models_of(info: EntryInfo) -> EntryModels:
    """Return the models of a kind of entry, by default the general ones."""
    return _MODELS.get(info, EntryModels(EntryView, EntryPage))
