"""The addresses of rollouts, and what they answer."""

import json
from typing import Annotated, Any

from holdfast.api.http.endpoints.endpoint import Endpoints, Key, MustExist, Param, Reply, Takes
from holdfast.api.http.endpoints.workloads import Presentation
from holdfast.domain.audit import Act, Caller
from holdfast.domain.job import JobState
from holdfast.service.manifests.reading import one_document
from holdfast.service.manifests.text import Text
from holdfast.service.operations.backend import Backend
from holdfast.wire.base import timestamp
from holdfast.wire.workloads import WorkloadPage, WorkloadView, WorkloadWhy
from tests.kinds.rollout.model import Rollout, spec_of
from tests.kinds.rollout.operations import Rollouts
from tests.kinds.rollout.words import ROLLOUT

_ROLLOUTS = Endpoints("rollouts")
ENDPOINTS = (_ROLLOUTS,)
_TAKES = Takes("A rollout: kind Rollout of `holdfast.dev/v1`.")

Ref = Annotated[str, Param("A rollout's name or id.", max_length=255)]


class RolloutView(WorkloadView):
    """A rollout."""

    replicas: int
    generation: int
    manifest: dict[str, Any]
    result: str = ""


class RolloutPage(WorkloadPage):
    """A page of rollouts."""

    items: list[RolloutView]  # type: ignore[assignment] # each is a view


def _view(row: Rollout, result: str = "") -> RolloutView:
    return RolloutView(
        id=row.id,
        name=row.name,
        state=row.phase(None),
        queue=row.queue,
        submitted_by=row.submitted_by,
        created_at=timestamp(row.created_at),
        replicas=spec_of(row).replicas,
        generation=row.generation,
        manifest=json.loads(row.manifest or "{}"),
        result=result,
    )


SHOWN = Presentation(
    info=ROLLOUT,
    group=_ROLLOUTS,
    operations=Rollouts,
    page=RolloutPage,
    listed=lambda page: ((one, one.phase(None), {}) for one in page.rows),
    view=_view,
    accepted=lambda _backend, _by, row: Reply(_view(row)),
    answer=RolloutView,
)
SHOWN.add_list("list_rollouts")
SHOWN.add_verb(Act.CANCEL, "cancel_rollout", "Cancel a rollout", "Ask for a rollout to be deleted.", 404)
SHOWN.add_verb(Act.SUSPEND, "suspend_rollout", "Suspend a rollout", "Ask for all of it to be stopped.", 404, 409)
SHOWN.add_verb(Act.RESUME, "resume_rollout", "Resume a rollout", "Ask for it to be started again.", 404, 409)
SHOWN.add_verb(Act.DELETE, "delete_rollout", "Delete a rollout", "Ask for a rollout to be deleted.", 404)


@_ROLLOUTS.add("POST", "/rollouts", RolloutView, 409, summary="Create a rollout", takes=_TAKES)
def create_rollout(backend: Backend, by: Caller, body: Text, *, idempotency_key: Key = None) -> RolloutView:
    """Create a rollout; it must be new."""
    del idempotency_key
    found = Rollouts(backend).put(by, one_document(body), create=True)
    return _view(found.row, found.result)


@_ROLLOUTS.add("PUT", "/rollouts/{ref}", RolloutView, 404, 409, summary="Write a rollout", takes=_TAKES)
def put_rollout(backend: Backend, by: Caller, ref: Ref, body: Text, *, must_exist: MustExist = False) -> RolloutView:
    """Create a rollout, or change the one there is."""
    del ref
    found = Rollouts(backend).put(by, one_document(body), create=False if must_exist else None)
    return _view(found.row, found.result)


@_ROLLOUTS.add("GET", "/rollouts/{ref}", RolloutView, 404, summary="Read a rollout")
def get_rollout(backend: Backend, by: Caller, ref: Ref) -> RolloutView:
    """Read a rollout."""
    return _view(Rollouts(backend).get(by, ref))


@_ROLLOUTS.add("GET", "/rollouts/{ref}/why", WorkloadWhy, 404, summary="Explain a rollout")
def explain_rollout(backend: Backend, by: Caller, ref: Ref) -> WorkloadWhy:
    """Explain where a rollout is."""
    rollouts = Rollouts(backend)
    row = rollouts.get(by, ref)
    jobs = [job for job in rollouts.jobs(by, row) if not job.terminal]
    running = sum(job.state is JobState.RUNNING for job in jobs)
    headline = f"Rollout {row.name} is {row.phase(None)}: {running} of {spec_of(row).replicas} replicas run."
    return WorkloadWhy(
        id=row.id,
        name=row.name,
        state=row.phase(None),
        headline=headline,
        summary=[f"{job.name} is {job.state}." for job in jobs],
    )
