"""Endpoints: the addresses at which tasks answer, each with a lease that its client renews."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.api.iris._generated import controller, job
from holdfast.api.iris.calls import CALLS, ENDPOINTS, LOG_SERVER, find_job, parse_name
from holdfast.ports.endpoints import EndpointFilter
from holdfast.service.endpoints import EndpointDirectory, Registration
from holdfast.service.manifests import iris

if TYPE_CHECKING:
    from holdfast.api.connect.calls import Rpc

LONGEST_LEASE_S, SHORTEST_LEASE_S = 600.0, 180.0
SYSTEM, LOGS_NAME = "/system/", "/system/log-server"
"""The prefix of the system's own names, and the name by which clients in tasks look up the log service."""
MOST_TASKS = 1_000
"""Tasks that one request may name."""
_MS = 1000
_Controller = controller.Controller


@CALLS.answers("RegisterEndpoint", ENDPOINTS)
def register_endpoint(
    call: Rpc, request: controller.Controller.RegisterEndpointRequest
) -> controller.Controller.RegisterEndpointResponse:
    """Register an endpoint for a task's current attempt, or renew it."""
    task = parse_name(iris.read_task, request.task_id, "task_id")
    job = find_job(call, task.job)
    if job is None or task.index >= job.gang:
        raise Rejected(Code.NOT_FOUND, f"Task {request.task_id} not found")
    if job.terminal:
        message = f"Task {request.task_id} is already terminal; endpoint not registered"
        raise Rejected(Code.FAILED_PRECONDITION, message)
    attempt = request.attempt_id if task.attempt is None else task.attempt
    if attempt != max(0, job.attempt - 1):
        message = f"Task {request.task_id} attempt {attempt} is no longer current"
        raise Rejected(Code.FAILED_PRECONDITION, message)
    lease_s = request.lease_duration.milliseconds / _MS if request.HasField("lease_duration") else LONGEST_LEASE_S
    granted_s = min(max(lease_s, SHORTEST_LEASE_S), LONGEST_LEASE_S)
    registration = Registration(
        request.name,
        request.address,
        job,
        str(task.job),
        rank=task.index,
        metadata=dict(request.metadata),
        id=request.endpoint_id or call.backend.ids.new(),
        lease_s=granted_s,
    )
    answer = _Controller.RegisterEndpointResponse(
        endpoint_id=EndpointDirectory(call.backend, iris.SYSTEM).register(call.caller, registration)
    )
    answer.lease_duration.milliseconds = round(granted_s * _MS)
    return answer


@CALLS.answers("UnregisterEndpoint", ENDPOINTS)
def unregister_endpoint(call: Rpc, request: controller.Controller.UnregisterEndpointRequest) -> job.Empty:
    """Remove an endpoint, if it exists."""
    EndpointDirectory(call.backend, iris.SYSTEM).unregister(call.caller, request.endpoint_id)
    return job.Empty()


@CALLS.answers("ListEndpoints", ENDPOINTS)
def list_endpoints(
    call: Rpc, request: controller.Controller.ListEndpointsRequest
) -> controller.Controller.ListEndpointsResponse:
    """List the endpoints with a name or a prefix, of all tasks or of some."""
    if request.prefix.startswith(SYSTEM):
        return _system_endpoints(call, request)
    if len(request.task_ids) > MOST_TASKS:
        refuse(f"task_ids has {len(request.task_ids)}; at most {MOST_TASKS}")
    tasks = {
        (str(task.job), task.index)
        for task in (parse_name(iris.read_task, endpoint, "task_ids") for endpoint in request.task_ids)
    }
    where = EndpointFilter(
        iris.SYSTEM,
        name=request.prefix if request.exact else None,
        begins="" if request.exact else request.prefix,
        job_names=frozenset(name for name, _ in tasks) if tasks else None,
    )
    answer = _Controller.ListEndpointsResponse()
    for endpoint in EndpointDirectory(call.backend, iris.SYSTEM).list(call.caller, where):
        if not tasks or (endpoint.job_name, endpoint.rank) in tasks:
            task_id = f"{endpoint.job_name}/{endpoint.rank}"
            answer.endpoints.add(
                endpoint_id=endpoint.id,
                name=endpoint.name,
                address=endpoint.address,
                task_id=task_id,
                metadata=endpoint.metadata,
            )
    return answer


def _system_endpoints(
    call: Rpc, request: controller.Controller.ListEndpointsRequest
) -> controller.Controller.ListEndpointsResponse:
    """List the log service, which is this server, under the address at which the caller reached it."""
    answer = _Controller.ListEndpointsResponse()
    if request.prefix == LOGS_NAME or (not request.exact and LOGS_NAME.startswith(request.prefix)):
        url = f"{call.scheme}://{call.reached}" if call.reached else call.door.place.tasks.url
        answer.endpoints.add(endpoint_id=LOGS_NAME, name=LOGS_NAME, address=f"{url.rstrip('/')}{LOG_SERVER}")
    return answer
