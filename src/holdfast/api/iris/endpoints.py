"""Endpoints: where tasks answer, each for a time, within which their clients renew them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.api.iris._generated import controller, job
from holdfast.api.iris.calls import CALLS, ENDPOINTS, LOG_SERVER
from holdfast.api.iris.family import found_job, named
from holdfast.ports.endpoints import EndpointFilter
from holdfast.service.endpoints import EndpointDirectory, Registration
from holdfast.service.manifests import iris

if TYPE_CHECKING:
    from holdfast.api.connect.calls import Rpc

LONGEST_LEASE_S, SHORTEST_LEASE_S = 600.0, 180.0
SYSTEM, LOGS_NAME = "/system/", "/system/log-server"
"""How names of the system begin, and the name by which the clients in tasks look for what answers for logs."""
MOST_TASKS = 1_000
"""Named in one question."""
_MS = 1000
_Controller = controller.Controller


@CALLS.answers("RegisterEndpoint", ENDPOINTS)
def register_endpoint(
    asked: Rpc, sent: controller.Controller.RegisterEndpointRequest
) -> controller.Controller.RegisterEndpointResponse:
    """Register an endpoint of the attempt of a task that runs, or renew it."""
    task = named(iris.read_task, sent.task_id, "task_id")
    found = found_job(asked, task.job)
    if found is None or task.index >= found.gang:
        raise Rejected(Code.NOT_FOUND, f"Task {sent.task_id} not found")
    if found.terminal:
        told = f"Task {sent.task_id} is already terminal; endpoint not registered"
        raise Rejected(Code.FAILED_PRECONDITION, told)
    attempt = sent.attempt_id if task.attempt is None else task.attempt
    if attempt != max(0, found.attempt - 1):
        told = f"Task {sent.task_id} attempt {attempt} is no longer current"
        raise Rejected(Code.FAILED_PRECONDITION, told)
    lease_s = sent.lease_duration.milliseconds / _MS if sent.HasField("lease_duration") else LONGEST_LEASE_S
    granted_s = min(max(lease_s, SHORTEST_LEASE_S), LONGEST_LEASE_S)
    wanted = Registration(
        sent.name,
        sent.address,
        found,
        str(task.job),
        rank=task.index,
        metadata=dict(sent.metadata),
        id=sent.endpoint_id or asked.backend.ids.new(),
        lease_s=granted_s,
    )
    answer = _Controller.RegisterEndpointResponse(
        endpoint_id=EndpointDirectory(asked.backend, iris.SYSTEM).register(asked.caller, wanted)
    )
    answer.lease_duration.milliseconds = round(granted_s * _MS)
    return answer


@CALLS.answers("UnregisterEndpoint", ENDPOINTS)
def unregister_endpoint(asked: Rpc, sent: controller.Controller.UnregisterEndpointRequest) -> job.Empty:
    """Forget an endpoint; one that is not there stays so."""
    EndpointDirectory(asked.backend, iris.SYSTEM).unregister(asked.caller, sent.endpoint_id)
    return job.Empty()


@CALLS.answers("ListEndpoints", ENDPOINTS)
def list_endpoints(
    asked: Rpc, sent: controller.Controller.ListEndpointsRequest
) -> controller.Controller.ListEndpointsResponse:
    """List the endpoints of a name, or those whose names begin with a text; of all tasks, or of some."""
    if sent.prefix.startswith(SYSTEM):
        return _of_the_system(asked, sent)
    if len(sent.task_ids) > MOST_TASKS:
        refuse(f"task_ids has {len(sent.task_ids)}; at most {MOST_TASKS}")
    tasks = {(str(task.job), task.index) for task in (named(iris.read_task, one, "task_ids") for one in sent.task_ids)}
    where = EndpointFilter(
        iris.SYSTEM,
        name=sent.prefix if sent.exact else None,
        begins="" if sent.exact else sent.prefix,
        job_names=frozenset(name for name, _ in tasks) if tasks else None,
    )
    answer = _Controller.ListEndpointsResponse()
    for one in EndpointDirectory(asked.backend, iris.SYSTEM).list(asked.caller, where):
        if not tasks or (one.job_name, one.rank) in tasks:
            task_id = f"{one.job_name}/{one.rank}"
            answer.endpoints.add(
                endpoint_id=one.id, name=one.name, address=one.address, task_id=task_id, metadata=one.metadata
            )
    return answer


def _of_the_system(
    asked: Rpc, sent: controller.Controller.ListEndpointsRequest
) -> controller.Controller.ListEndpointsResponse:
    """List what answers for logs, which is this server, where the caller has reached it."""
    answer = _Controller.ListEndpointsResponse()
    if sent.prefix == LOGS_NAME or (not sent.exact and LOGS_NAME.startswith(sent.prefix)):
        url = f"{asked.scheme}://{asked.reached}" if asked.reached else asked.door.place.tasks.url
        answer.endpoints.add(endpoint_id=LOGS_NAME, name=LOGS_NAME, address=f"{url.rstrip('/')}{LOG_SERVER}")
    return answer
