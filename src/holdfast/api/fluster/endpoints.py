"""Endpoints: the addresses at which programs of jobs answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.connect.refusals import refuse
from holdfast.api.fluster._generated import cluster
from holdfast.api.fluster.calls import CALLS, CONTROLLER
from holdfast.errors import Problem
from holdfast.service.endpoints import EndpointDirectory, Registration
from holdfast.service.manifests.fluster import SYSTEM
from holdfast.service.operations.jobs import NamedJobs

if TYPE_CHECKING:
    from holdfast.api.connect.calls import Rpc
    from holdfast.ports.endpoints import ProgramEndpoint


@CALLS.answers("RegisterEndpoint", CONTROLLER)
def register_endpoint(
    call: Rpc, request: cluster.Controller.RegisterEndpointRequest
) -> cluster.Controller.RegisterEndpointResponse:
    """Register an endpoint for the lifetime of a job's current attempt."""
    if not request.job_id:
        refuse("job_id must not be empty", [Problem("job_id", "is required", hint="the full name of a job")])
    job = NamedJobs(call.backend, SYSTEM).find(call.caller, request.job_id)
    registration = Registration(request.name, request.address, job, request.job_id, metadata=dict(request.metadata))
    key = EndpointDirectory(call.backend, SYSTEM).register(call.caller, registration)
    return cluster.Controller.RegisterEndpointResponse(endpoint_id=key)


@CALLS.answers("UnregisterEndpoint", CONTROLLER)
def unregister_endpoint(call: Rpc, request: cluster.Controller.UnregisterEndpointRequest) -> None:
    """Remove an endpoint, if it exists."""
    EndpointDirectory(call.backend, SYSTEM).unregister(call.caller, request.endpoint_id)


@CALLS.answers("LookupEndpoint", CONTROLLER)
def lookup_endpoint(
    call: Rpc, request: cluster.Controller.LookupEndpointRequest
) -> cluster.Controller.LookupEndpointResponse:
    """Find the endpoint of a name."""
    endpoint = EndpointDirectory(call.backend, SYSTEM).lookup(call.caller, request.name)
    return cluster.Controller.LookupEndpointResponse(endpoint=_endpoint_message(endpoint))


@CALLS.answers("ListEndpoints", CONTROLLER)
def list_endpoints(
    call: Rpc, request: cluster.Controller.ListEndpointsRequest
) -> cluster.Controller.ListEndpointsResponse:
    """List the endpoints of a name and those below it."""
    endpoints = EndpointDirectory(call.backend, SYSTEM).below(call.caller, request.prefix)
    return cluster.Controller.ListEndpointsResponse(endpoints=map(_endpoint_message, endpoints))


def _endpoint_message(endpoint: ProgramEndpoint) -> cluster.Controller.Endpoint:
    return cluster.Controller.Endpoint(
        endpoint_id=endpoint.id,
        name=endpoint.name,
        address=endpoint.address,
        job_id=endpoint.job_name,
        metadata=endpoint.metadata,
    )
