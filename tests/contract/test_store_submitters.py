"""Whose what operators write is: its first writer's, whoever changes it, until it is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.category import FailureCategory
from holdfast.domain.job import Queue
from holdfast.domain.notifier import Medium, Notifier
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.terms.entries import ENTRIES
from holdfast.domain.terms.projects import Domain, Image, KeyPair, ResourceGroup
from holdfast.ports.entries import kind_of

if TYPE_CHECKING:
    from holdfast.ports.store import Store

ANN, BOB = (Caller(Principal(name, roles=(Role.ADMIN,)), 1.0) for name in ("ann", "bob"))
NOUNS = [info.noun for info in ENTRIES.values()]


def _write(store: Store, by: Caller | None, seed: int) -> None:
    store.put_entry(RetryPolicy("one", (), retry_limit=seed), caller=by)
    store.put_entry(Domain("one", f"{seed}"), caller=by)
    store.put_entry(ResourceGroup("one", f"{seed}"), caller=by)
    store.put_entry(Image("one", f"python:3.{seed}"), caller=by)
    store.put_entry(KeyPair("one", f"ann{seed}"), caller=by)
    store.put_entry(Queue("one", weight=1.0 + seed), caller=by)
    store.put_entry(FailureCategory("one", (), precedence=seed), caller=by)
    store.put_entry(Notifier("one", Medium.WEBHOOK, url="https://example.org", timeout_s=1.0 + seed), caller=by)


def test_it_stays_its_first_writers_until_it_is_deleted(store: Store) -> None:
    _write(store, ANN, 1)
    _write(store, BOB, 2)
    assert store.catalogue().submitters == {f"{kind} one": "ann" for kind in NOUNS}
    for info in ENTRIES.values():
        store.delete_entry(kind_of(info), "one")
    assert store.catalogue().submitters == {}
    _write(store, BOB, 3)
    assert store.catalogue().submitters == {f"{kind} one": "bob" for kind in NOUNS}


def test_what_nobody_known_wrote_is_nobodys(store: Store) -> None:
    _write(store, None, 1)
    _write(store, BOB, 2)
    assert store.catalogue().submitters == {}


def test_equal_content_of_somebody_else_is_no_new_revision(store: Store) -> None:
    first = store.put_entry(RetryPolicy("one", (), retry_limit=1), caller=ANN)
    assert store.put_entry(RetryPolicy("one", (), retry_limit=1), caller=BOB) == first
