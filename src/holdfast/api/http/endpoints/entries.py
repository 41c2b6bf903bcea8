"""The addresses of entries, which operators write, the same for every kind: list, create, read, put and delete."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.api.http.endpoints.endpoint import (
    DryRun,
    Endpoints,
    IfMatch,
    MustExist,
    Name,
    Reply,
    Takes,
    created_status,
)
from holdfast.api.http.endpoints.parameters import read_match
from holdfast.domain.audit import Caller
from holdfast.domain.category import FailureCategory
from holdfast.domain.failure_catalogue import BUILT_IN
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.terms.entries import CATEGORY, ENTRIES, KEYPAIR, POLICY, EntryInfo
from holdfast.domain.terms.projects import KeyPair
from holdfast.ports.entries import Entry, kind_of
from holdfast.service.manifests.reading import manifest_of
from holdfast.service.manifests.text import Text
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.catalogue import Entries, operations_of, spec_of
from holdfast.wire.base import Response, optional_timestamp
from holdfast.wire.entries import EntryView, models_of
from holdfast.wire.problems import problem_entry


def _of_policy(policy: RetryPolicy) -> dict[str, Any]:
    return {"revision": policy.revision}


def _of_category(category: FailureCategory) -> dict[str, Any]:
    return {"built_in": category in BUILT_IN}


def _of_keypair(keypair: KeyPair) -> dict[str, Any]:
    return {"created_at": optional_timestamp(keypair.created_at or None)}


_OWN_FIELDS: Mapping[EntryInfo, Callable[[Any], dict[str, Any]]] = {
    POLICY: _of_policy,
    CATEGORY: _of_category,
    KEYPAIR: _of_keypair,
}
"""The fields of an answer that only this kind of entry has."""


def _view(entries: Entries[Any], caller: Caller, entry: Entry, submitter: str) -> EntryView:
    info = entries.kind.info
    return models_of(info).view(
        name=entry.name,
        submitted_by=submitter,
        spec=spec_of(entry),
        warnings=list(map(problem_entry, entries.warnings(caller, entry))),
        **_OWN_FIELDS.get(info, lambda _: {})(entry),
    )


def _reply(
    entries: Entries[Any], caller: Caller, entry: Entry, *, status: int | None = None, dry_run: bool = False
) -> Reply:
    """Show an entry; one that a dry run would create counts as submitted by the caller."""
    submitter = entries.submitters(caller).get(entry.name, caller.principal.name if dry_run else "")
    version = str(entry.revision) if isinstance(entry, RetryPolicy) else None
    return Reply(_view(entries, caller, entry, submitter), status, version=version)


def _endpoints(info: EntryInfo) -> Endpoints:
    """Make the addresses of one kind."""
    kind, models, group = kind_of(info), models_of(info), Endpoints(info.plural.replace("-", " "))
    word, takes = info.subject.replace("-", "_"), Takes(f"A manifest of kind {info.manifest}.")
    noun = f"{'an' if info.noun[0] in 'aeiou' else 'a'} {info.noun}"
    all_path, one_path = f"/{info.plural}", f"/{info.plural}/{{name}}"

    def of(backend: Backend) -> Entries[Any]:
        return operations_of(info).of(backend)

    @group.add("GET", all_path, models.page, summary=f"List {group.tag}", name=f"list_{group.tag.replace(' ', '_')}")
    def list_all(backend: Backend, caller: Caller) -> Response:
        """List all, by name; failure categories in order of evaluation."""
        entries, submitters = of(backend), of(backend).submitters(caller)
        views = [_view(entries, caller, entry, submitters.get(entry.name, "")) for entry in entries.list(caller)]
        return models.page.model_validate({"items": views})

    @group.add(
        "POST", all_path, models.view, 409, summary=f"Create {noun}", status=201, takes=takes, name=f"create_{word}"
    )
    def create(backend: Backend, caller: Caller, body: Text, *, dry_run: DryRun = False) -> Reply:
        """Create one; its name must be new."""
        entry = of(backend).put(caller, manifest_of(body, kind.model), create=True, dry_run=dry_run)
        return _reply(of(backend), caller, entry, status=created_status(dry_run=dry_run), dry_run=dry_run)

    @group.add("GET", one_path, models.view, 404, summary=f"Read {noun}", name=f"get_{word}")
    def get(backend: Backend, caller: Caller, name: Name) -> Reply:
        """Read one."""
        return _reply(of(backend), caller, of(backend).get(caller, name))

    def put(  # noqa: PLR0913 - the parameters of an address
        backend: Backend,
        caller: Caller,
        name: Name,
        body: Text,
        *,
        if_match: IfMatch = None,
        must_exist: MustExist = False,
        dry_run: DryRun = False,
    ) -> Reply:
        """Create or replace one."""
        match, entry = read_match(if_match), manifest_of(body, kind.model, name=name)
        create = False if must_exist or match.exists else None
        stored = of(backend).put(caller, entry, create=create, if_match=match.versions, dry_run=dry_run)
        return _reply(of(backend), caller, stored, dry_run=dry_run)

    def delete(backend: Backend, caller: Caller, name: Name, *, if_match: IfMatch = None) -> None:
        """Delete one that is not in use."""
        of(backend).delete(caller, name, if_match=read_match(if_match).versions)

    if not info.versioned:
        for call in (put, delete):
            del call.__annotations__["if_match"]
    stale = (409,) if info.versioned else ()
    summary = f"Create or replace {noun}"
    group.add("PUT", one_path, models.view, 404, *stale, summary=summary, takes=takes, name=f"put_{word}")(put)
    group.add("DELETE", one_path, None, 404, 409, summary=f"Delete {noun}", status=204, name=f"delete_{word}")(delete)
    return group


ENDPOINTS = tuple(map(_endpoints, ENTRIES.values()))
