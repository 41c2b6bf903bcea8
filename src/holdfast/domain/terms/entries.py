"""What each kind of entry is called that operators write: queues, policies, failure categories, notifiers.

An address, a command, a right, an event and a line of the audit log are about a kind by these words. What a kind is
made of is its ``EntryKind`` in ``ports/entries.py``, how its manifest is read and written in ``dialects/manifests.py``,
and what is particular about it a subclass of ``Entries`` in ``service/operations/catalogue.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.domain.terms.kinds import SubjectName


class EntryInfo(NamedTuple):
    """One kind of entry."""

    noun: str
    """What messages call one."""
    plural: str
    """Of the collection, in addresses."""
    spellings: tuple[str, ...]
    """How a person may write it, without hyphens and in lower case: how one is printed, then how several are."""
    manifest: str
    """Its kind in manifests."""
    versioned: bool = False
    """Whether each change is a revision, and one can be written only as long as it has a revision, by ``If-Match``."""
    private: bool = False
    """Whether only operators see it."""

    @property
    def subject(self) -> SubjectName:
        """What the audit log and the table of rights call it."""
        return SubjectName(self.noun.replace(" ", "-"))

    @property
    def family(self) -> str:
        """The first word of its events."""
        return self.noun.rpartition(" ")[2]


CATEGORY = EntryInfo(
    noun="failure category",
    plural="failure-categories",
    spellings=("category", "categories", "failurecategory", "failurecategories"),
    manifest="FailureCategory",
)
POLICY = EntryInfo(
    noun="retry policy",
    plural="retry-policies",
    spellings=("retrypolicy", "retrypolicies", "policy", "policies", "rp"),
    manifest="RetryPolicy",
    versioned=True,
)
NOTIFIER = EntryInfo(
    noun="notifier",
    plural="notifiers",
    spellings=("notifier", "notifiers"),
    manifest="Notifier",
    private=True,
)
QUEUE = EntryInfo(noun="queue", plural="queues", spellings=("queue", "queues", "q"), manifest="Queue")

ENTRIES = {info.subject: info for info in (CATEGORY, POLICY, NOTIFIER, QUEUE)}
"""Every kind, in the order in which ``apply`` writes them: policies name categories, queues name both and notifiers."""
