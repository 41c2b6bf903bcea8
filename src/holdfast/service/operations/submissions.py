"""Submits jobs and arrays, applies Kubernetes Jobs, checks manifests, and keeps secrets and files for jobs."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct
from holdfast.errors import InvalidRequest, Problem
from holdfast.service.access.asking import asks
from holdfast.service.admission.inputs import kept as kept_blob
from holdfast.service.admission.limits import MOST_JOBS
from holdfast.service.admission.secrets import kept
from holdfast.service.apply import AppliedJob, apply_job
from holdfast.service.manifests.made_names import with_names
from holdfast.service.manifests.reading import bulk_items, document_named, documents_of, several, written_job
from holdfast.service.naming import engines_of
from holdfast.service.operations.rehearsal import Checked, Rehearsal, Verb
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobs import JOBS
from holdfast.service.submit import ItemOutcome, WrittenJob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.containers import EngineInfo
    from holdfast.domain.job import Job
    from holdfast.errors import HoldfastError
    from holdfast.ports.catalogue import Catalogue
    from holdfast.service.manifests.text import Text
    from holdfast.service.operations.backend import Backend

__all__ = ["MOST_JOBS", "AppliedJob", "Checked", "ItemOutcome", "Verb", "WrittenJob"]


def decoded(data: str) -> bytes:
    """Decode base64.

    Raises:
        InvalidRequest: The text is not base64.
    """
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise InvalidRequest(problems=[Problem("data", f"is not base64: {error}")]) from None


class Submissions(Struct, frozen=True):
    """The operations that submit, apply and check."""

    backend: Backend

    @asks(Right.SUBMIT, Subject.JOB)
    def read(
        self, _caller: Caller, body: Text, *, lenient: bool = False, key: str | None = None
    ) -> WrittenJob | Sequence[WrittenJob | HoldfastError]:
        """Read the job, or the items, that a text would submit; an invalid item is an error.

        Raises:
            InvalidManifest: The text is not a manifest, or not a list of them.
        """
        documents = with_names(documents_of(body, lenient=lenient), self.backend.ids, key)
        engines = partial(engines_of, self.backend.store)
        items = bulk_items(documents, lenient=lenient, engines=engines)
        return written_job(documents[0], lenient=lenient, engines=engines) if items is None else items

    @asks(Right.SUBMIT, Subject.JOB)
    def engines(self, _caller: Caller) -> Sequence[EngineInfo]:
        """List the engines that may run submitted jobs."""
        return engines_of(self.backend.store)

    @asks(Right.SUBMIT, Subject.JOB)
    def submit(self, caller: Caller, written: WrittenJob, *, key: str | None = None) -> Job:
        """Submit one job; see ``Submitter.submit``."""
        job = self.backend.submitter(caller).submit(written, key=key)
        self.backend.count(1, 0)
        return job

    @asks(Right.SUBMIT, Subject.JOB)
    def submit_many(
        self,
        caller: Caller,
        items: Sequence[WrittenJob | HoldfastError],
        *,
        atomic: bool = True,
        key: str | None = None,
        catalogue: Catalogue | None = None,
    ) -> Sequence[ItemOutcome]:
        """Submit many jobs and arrays in one transaction; see ``Submitter.submit_many``.

        Args:
            caller: The caller.
            items: The jobs and arrays.
            atomic: All or nothing.
            key: Idempotency key; sending the same again with it stores nothing.
            catalogue: The current catalogue; by default it is read.
        """
        outcomes = self.backend.submitter(caller, catalogue).submit_many(items, atomic=atomic, key=key)
        accepted = sum(outcome.created is not None for outcome in outcomes)
        self.backend.count(accepted, len(outcomes) - accepted)
        return outcomes

    @asks(Right.SUBMIT, Subject.JOB)
    def check(self, caller: Caller, items: Sequence[WrittenJob | HoldfastError]) -> Sequence[str | None]:
        """Check a submission without storing it; returns the names. See ``Submitter.check_many``."""
        return self.backend.submitter(caller).check_many(items)

    @asks(Right.SUBMIT, Subject.JOB)
    def apply(self, caller: Caller, ref: str, body: Text, *, lenient: bool = False) -> AppliedJob:
        """Submit a Kubernetes Job unless the newest one of its name is the same; see ``apply_job``."""
        control = Control(JOBS, self.backend.store, self.backend.clock, make_room=self.backend.make_room)
        document, engines = document_named(body, ref, lenient=lenient), partial(engines_of, self.backend.store)
        written = written_job(document, lenient=lenient, engines=engines)
        applied = apply_job(self.backend.submitter(caller), control, written)
        self.backend.count(int(applied.result == "created"), 0)
        return applied

    @asks(Right.SUBMIT, Subject.JOB)
    def rehearse(self, caller: Caller, body: Text, *, verb: Verb, lenient: bool = False) -> Sequence[Checked]:
        """Check manifests of any kinds as if they were written in order; see ``Rehearsal.check``."""
        documents = documents_of(body, lenient=lenient)
        if verb is Verb.CREATE:
            documents = with_names(documents, self.backend.ids)
        items = several(documents)
        documents_read = documents if items is None else items
        return Rehearsal(self.backend).check(caller, documents_read, verb=verb, lenient=lenient)

    @asks(Right.SUBMIT, Subject.JOB)
    def keep_secret(self, caller: Caller, value: str) -> str:
        """Keep a secret for jobs that are submitted within an hour; returns its name. See ``kept``."""
        return kept(value, self.backend.secrets, caller.principal)

    @asks(Right.SUBMIT, Subject.JOB)
    def keep_blob(self, caller: Caller, data: bytes, *, archive: bool = False) -> str:
        """Keep a file for jobs that are submitted within an hour; returns its name. See ``inputs.kept``."""
        return kept_blob(data, self.backend.blobs, caller.principal, field="data", archive=archive)
