"""Workers: the nodes on which tasks run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.iris._generated import controller, job
from holdfast.api.iris.calls import CALLS, CONTROLLER
from holdfast.service.operations.nodes import Nodes

if TYPE_CHECKING:
    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Node

_Controller = controller.Controller
_MS = 1000
_LARGEST = (1 << 63) - 1


@CALLS.answers("ListWorkers", CONTROLLER)
def list_workers(
    call: Rpc, request: controller.Controller.ListWorkersRequest
) -> controller.Controller.ListWorkersResponse:
    """List the nodes; one that is cordoned or short of a resource gets no work and counts as unhealthy."""
    nodes, query = Nodes(call.backend.store, call.backend.clock).list(call.caller), request.query
    matching = [node for node in nodes.nodes if query.contains.lower() in node.name.lower()]
    by_time = query.sort_field == _Controller.WORKER_SORT_FIELD_LAST_HEARTBEAT
    matching.sort(
        key=lambda node: (node.seen_at if by_time else 0, node.name),
        reverse=query.sort_direction == _Controller.SORT_DIRECTION_DESC,
    )
    begin = max(0, query.offset)
    page = matching[begin : begin + query.limit] if query.limit > 0 else matching[begin:]
    answer = _Controller.ListWorkersResponse(total_count=len(matching), has_more=begin + len(page) < len(matching))
    for node in page:
        running = {run.job_id for run in nodes.running if (run.executor, run.node) == (node.executor, node.name)}
        cordoned = node.name in nodes.cordons
        worker = answer.workers.add(
            worker_id=node.name,
            healthy=node.short is None and not cordoned,
            running_job_ids=sorted(running),
            status_message="cordoned" if cordoned else "" if node.short is None else str(node.short.message),
            backend_id="default",
            scale_group=node.executor,
            metadata=_metadata(node),
        )
        worker.last_heartbeat.epoch_ms = round(node.seen_at * _MS)
    return answer


def _metadata(node: Node) -> job.WorkerMetadata:
    metadata = job.WorkerMetadata(
        hostname=node.name,
        cpu_count=min(node.capacity.cpu_m // 1000, (1 << 31) - 1),
        memory_bytes=min(node.capacity.memory, _LARGEST),
        gpu_count=min(node.capacity.gpu, (1 << 31) - 1),
    )
    metadata.device.cpu.variant = "cpu"
    for name, value in node.labels.items():
        metadata.attributes[name].string_value = value
    return metadata
