"""Workers: the nodes on which jobs run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.fluster import jobs
from holdfast.api.fluster._generated import cluster
from holdfast.api.fluster.calls import CALLS, CONTROLLER, WORKER
from holdfast.service.manifests.fluster import SYSTEM
from holdfast.service.operations.jobs import NamedJobs
from holdfast.service.operations.nodes import Nodes

if TYPE_CHECKING:
    from holdfast.api.connect.calls import Rpc


@CALLS.answers("ListWorkers", CONTROLLER)
def list_workers(call: Rpc, _request: cluster.Controller.ListWorkersRequest) -> cluster.Controller.ListWorkersResponse:
    """List the nodes; one that is cordoned or short of a resource gets no work and counts as unhealthy."""
    nodes = Nodes(call.backend.store, call.backend.clock).list(call.caller)
    answer = cluster.Controller.ListWorkersResponse()
    names = NamedJobs(call.backend, SYSTEM).running(call.caller, nodes.running)
    for node in nodes.nodes:
        runs = (run for run in nodes.running if (run.executor, run.node) == (node.executor, node.name))
        running = {names[run.job_id] for run in runs if run.job_id in names}
        answer.workers.add(
            worker_id=node.name,
            healthy=node.short is None and node.name not in nodes.cordons,
            last_heartbeat_ms=round(node.seen_at * 1000),
            running_job_ids=sorted(running),
        )
    return answer


@CALLS.answers("GetJobStatus", WORKER)
def get_job_status(call: Rpc, request: cluster.Worker.GetJobStatusRequest) -> cluster.JobStatus:
    """Read a job's status, as from the controller."""
    status_request = cluster.Controller.GetJobStatusRequest(
        job_id=request.job_id, include_result=request.include_result
    )
    return jobs.get_job_status(call, status_request).job


@CALLS.answers("ListJobs", WORKER)
def list_jobs(call: Rpc, _request: cluster.Worker.ListJobsRequest) -> cluster.Worker.ListJobsResponse:
    """List the statuses of all jobs, on whatever node they run."""
    return cluster.Worker.ListJobsResponse(jobs=jobs.list_jobs(call, cluster.Controller.ListJobsRequest()).jobs)


@CALLS.answers("HealthCheck", WORKER)
def check_health(_call: Rpc, _request: cluster.Empty) -> cluster.Worker.HealthResponse:
    """Answer that the door works."""
    return cluster.Worker.HealthResponse(healthy=True)
