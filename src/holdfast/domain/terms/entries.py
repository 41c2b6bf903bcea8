"""The names of each kind of entry that operators write, such as queues and retry policies.

Addresses, commands, rights, events and the audit log use these names. The class of an entry is in ``ports/entries.py``
(``EntryKind``), how its manifest is read and written in ``dialects/manifests.py``, and what is particular about it in a
subclass of ``Entries`` in ``service/operations/catalogue.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.domain.terms.kinds import SubjectName


class EntryInfo(NamedTuple):
    """One kind of entry."""

    noun: str
    """Its name in messages."""
    plural: str
    """The name of the collection in addresses."""
    spellings: tuple[str, ...]
    """Accepted spellings, without hyphens and in lower case; the first two are printed, for one and for several."""
    manifest: str
    """Its kind in manifests."""
    versioned: bool = False
    """Whether each change is a revision, and a write may require the current revision, by ``If-Match``."""
    private: bool = False
    """Whether only operators see it."""
    guarded: bool = False
    """Whether only admins write it."""
    topic: str = ""
    """The first word of its events' names; by default the last word of its noun."""

    @property
    def subject(self) -> SubjectName:
        """Its name in the audit log and the table of rights."""
        return SubjectName(self.noun.replace(" ", "-"))

    @property
    def family(self) -> str:
        """The first word of its events' names."""
        return self.topic or self.noun.rpartition(" ")[2]


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
DOMAIN = EntryInfo(noun="domain", plural="domains", spellings=("domain", "domains"), manifest="Domain")
QUEUE = EntryInfo(noun="queue", plural="queues", spellings=("queue", "queues", "q"), manifest="Queue")
RESOURCE_GROUP = EntryInfo(
    noun="resource group",
    plural="resource-groups",
    spellings=("resourcegroup", "resourcegroups", "rg"),
    manifest="ResourceGroup",
    topic="resourcegroup",
)
IMAGE = EntryInfo(noun="image", plural="images", spellings=("image", "images"), manifest="Image")
KEYPAIR = EntryInfo(
    noun="keypair",
    plural="keypairs",
    spellings=("keypair", "keypairs"),
    manifest="KeyPair",
    private=True,
    guarded=True,
)

ENTRIES = {info.subject: info for info in (CATEGORY, POLICY, NOTIFIER, DOMAIN, QUEUE, RESOURCE_GROUP, IMAGE, KEYPAIR)}
"""All kinds, in the order in which ``apply`` writes them: policies name categories, queues name all four."""
