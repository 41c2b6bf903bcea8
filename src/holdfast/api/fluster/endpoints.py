"""Endpoints: where programs of jobs answer."""

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
    asked: Rpc, sent: cluster.Controller.RegisterEndpointRequest
) -> cluster.Controller.RegisterEndpointResponse:
    """Register an endpoint of the attempt of a job that runs."""
    if not sent.job_id:
        refuse("job_id must not be empty", [Problem("job_id", "is required", hint="the full name of a job")])
    job = NamedJobs(asked.backend, SYSTEM).find(asked.caller, sent.job_id)
    wanted = Registration(sent.name, sent.address, job, sent.job_id, metadata=dict(sent.metadata))
    key = EndpointDirectory(asked.backend, SYSTEM).register(asked.caller, wanted)
    return cluster.Controller.RegisterEndpointResponse(endpoint_id=key)


@CALLS.answers("UnregisterEndpoint", CONTROLLER)
def unregister_endpoint(asked: Rpc, sent: cluster.Controller.UnregisterEndpointRequest) -> None:
    """Forget an endpoint; one that is not there stays so."""
    EndpointDirectory(asked.backend, SYSTEM).unregister(asked.caller, sent.endpoint_id)


@CALLS.answers("LookupEndpoint", CONTROLLER)
def lookup_endpoint(
    asked: Rpc, sent: cluster.Controller.LookupEndpointRequest
) -> cluster.Controller.LookupEndpointResponse:
    """Find the endpoint of a name."""
    found = EndpointDirectory(asked.backend, SYSTEM).lookup(asked.caller, sent.name)
    return cluster.Controller.LookupEndpointResponse(endpoint=_told(found))


@CALLS.answers("ListEndpoints", CONTROLLER)
def list_endpoints(
    asked: Rpc, sent: cluster.Controller.ListEndpointsRequest
) -> cluster.Controller.ListEndpointsResponse:
    """List the endpoints of a name and those below it."""
    found = EndpointDirectory(asked.backend, SYSTEM).below(asked.caller, sent.prefix)
    return cluster.Controller.ListEndpointsResponse(endpoints=map(_told, found))


def _told(one: ProgramEndpoint) -> cluster.Controller.Endpoint:
    return cluster.Controller.Endpoint(
        endpoint_id=one.id, name=one.name, address=one.address, job_id=one.job_name, metadata=one.metadata
    )
