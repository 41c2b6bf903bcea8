"""Turns a request for a session into the job to submit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.backendai.sessions import SessionPlace, read_session, warnings_of
from holdfast.domain.record import Struct
from holdfast.domain.sessions.model import named_id
from holdfast.domain.sessions.policy import effective, partial
from holdfast.errors import AlreadyExists, Forbidden, InvalidRequest, Problem, Refused
from holdfast.ports.names import ExternalName
from holdfast.service.sessions.directory import USER, Directory
from holdfast.service.submit import WrittenJob

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.ports.catalogue import Catalogue

SYSTEM = "backendai"
"""The prefix of the names of sessions among jobs."""
RETRY_POLICY = "retry_policy"


class NewSession(Struct, frozen=True):
    """A session to create."""

    written: WrittenJob
    external: ExternalName
    warnings: Sequence[str]


def external_name(user: str, name: str) -> str:
    """Return the name that a live session has among jobs, unique among those of its user."""
    return f"{SYSTEM}/{named_id(USER, user)}/{name}"


def name_taken(name: str) -> AlreadyExists:
    """Return the error for the name of another live session of a user."""
    return AlreadyExists(f"you have a session {name!r} that has not ended", hint="use another name, or terminate it")


def new_session(
    caller: Caller,
    request: Mapping[str, Any],
    catalogue: Catalogue,
    *,
    access_key: str,
    awaited: Sequence[Job],
    holder: Job | None,
) -> NewSession:
    """Return the session that a request asks for.

    Args:
        caller: Its owner.
        request: The fields of the request that its client set.
        catalogue: The catalogue.
        access_key: The caller's keypair.
        awaited: The jobs of the sessions that it waits for.
        holder: The job that has its name, if any.

    Raises:
        NotFound: Its project, image or resource group does not exist.
        AlreadyExists: Another live session of the caller has its name.
        Forbidden: It is for somebody else.
        Refused: Its domain or its resource group is not active.
        InvalidRequest: It is not valid; with every problem.
    """
    name, user = str(request["session_name"]), caller.principal.name
    if holder is not None and not holder.terminal:
        raise name_taken(name)
    owner = request.get("owner_id")
    if owner is not None and owner != named_id(USER, user):
        msg = "sessions can be created only for oneself"
        raise Forbidden(msg, hint="leave owner_id out")
    problems: list[Problem] = []
    spec = read_session(request, _place(request, catalogue, access_key, awaited), problems)
    if spec is None:
        msg = "the session is not valid"
        raise InvalidRequest(msg, problems=problems)
    written = WrittenJob(spec, flat=True, session_name=name, session_tag=str(request.get("tag") or ""))
    replaces = "" if holder is None else holder.id
    external = ExternalName(external_name(user, name), caller.request_id.encode(), replaces)
    return NewSession(written, external, warnings_of(request))


def _place(request: Mapping[str, Any], catalogue: Catalogue, access_key: str, awaited: Sequence[Job]) -> SessionPlace:
    """Find what a request names, and its effective retry policy."""
    directory, settings, document = Directory(catalogue), catalogue.settings, request.get(RETRY_POLICY)
    project = directory.project(str(request["project_id"]))
    domain = directory.domain(project.domain)
    group = directory.group(request.get("resource_group_id"), request.get("resource_group"))
    for noun, entry in (("domain", domain), ("resource group", group)):
        if not entry.active:
            msg = f"{noun} {entry.name!r} is not active"
            raise Refused(msg, hint="ask its operator")
    own = {} if document is None else partial(document, RETRY_POLICY)
    defaults = (project.session_retry, domain.session_retry, settings.session_retry_default)
    return SessionPlace(
        project=project.name,
        domain=domain.name,
        image=directory.image(str(request["image_id"])),
        resource_group=group,
        access_key=access_key,
        policy=effective(own, *defaults, path=RETRY_POLICY),
        retries_enabled=settings.session_retries,
        dependencies=tuple(job.id for job in awaited),
    )
