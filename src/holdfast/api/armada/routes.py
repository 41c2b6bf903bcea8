"""The paths of the JSON gateway, as Armada's public interface annotates them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


class Route(Struct, frozen=True):
    """A path, and the call that it stands for."""

    method: str
    path: str
    """A name in braces is a field of the message."""
    service: str
    rpc: str

    @property
    def has_body(self) -> bool:
        """Whether the body is the message; otherwise it is in the query."""
        return self.method in {"POST", "PUT"}


ROUTES = (
    Route("POST", "/v1/job/submit", "api.Submit", "SubmitJobs"),
    Route("POST", "/v1/job/cancel", "api.Submit", "CancelJobs"),
    Route("POST", "/v1/jobset/cancel", "api.Submit", "CancelJobSet"),
    Route("POST", "/v1/job/reprioritize", "api.Submit", "ReprioritizeJobs"),
    Route("POST", "/v1/job/preempt", "api.Submit", "PreemptJobs"),
    Route("POST", "/v1/queue", "api.Submit", "CreateQueue"),
    Route("POST", "/v1/batched/create_queues", "api.Submit", "CreateQueues"),
    Route("PUT", "/v1/queue/{name}", "api.Submit", "UpdateQueue"),
    Route("PUT", "/v1/batched/update_queues", "api.Submit", "UpdateQueues"),
    Route("DELETE", "/v1/queue/{name}", "api.Submit", "DeleteQueue"),
    Route("GET", "/v1/queue/{name}", "api.Submit", "GetQueue"),
    Route("GET", "/v1/batched/queues", "api.Submit", "GetQueues"),
    Route("POST", "/v1/retry-policy", "api.RetryPolicyService", "CreateRetryPolicy"),
    Route("PUT", "/v1/retry-policy/{name}", "api.RetryPolicyService", "UpdateRetryPolicy"),
    Route("DELETE", "/v1/retry-policy/{name}", "api.RetryPolicyService", "DeleteRetryPolicy"),
    Route("GET", "/v1/retry-policy/{name}", "api.RetryPolicyService", "GetRetryPolicy"),
    Route("GET", "/v1/retry-policies", "api.RetryPolicyService", "GetRetryPolicies"),
    Route("POST", "/v1/job-set/{queue}/{id}", "api.Event", "GetJobSetEvents"),
    Route("POST", "/v1/job/status", "api.Jobs", "GetJobStatus"),
    Route("POST", "/v1/job/statusUsingExternalJobUri", "api.Jobs", "GetJobStatusUsingExternalJobUri"),
    Route("POST", "/v1/job/details", "api.Jobs", "GetJobDetails"),
    Route("POST", "/v1/job/errors", "api.Jobs", "GetJobErrors"),
    Route("POST", "/v1/run/details", "api.Jobs", "GetJobRunDetails"),
    Route("POST", "/v1/queues/active", "api.Jobs", "GetActiveQueues"),
    Route("POST", "/v1/binoculars/log", "binoculars.Binoculars", "Logs"),
    Route("POST", "/v1/binoculars/cordon", "binoculars.Binoculars", "Cordon"),
    Route("POST", "/v1/node/preempt/{name}", "api.Node", "PreemptOnNode"),
    Route("POST", "/v1/node/cancel/{name}", "api.Node", "CancelOnNode"),
)
PREFIX = "/v1/"
"""What all paths begin with."""
_PARTS = tuple((route, route.path.split("/")) for route in ROUTES)


def matching(path: str) -> Mapping[str, tuple[Route, Mapping[str, str]]]:
    """Return the routes that match a path as it was sent, by HTTP method, with the fields in the path.

    The name of a job set may contain anything, even an escaped slash, which upstream's gateway does not match.
    """
    pieces, routes = path.split("/"), {}
    for route, parts in _PARTS:
        pairs = [*zip(parts, pieces, strict=False)]
        if len(parts) == len(pieces) and all(part == text or (part[:1] == "{" and text) for part, text in pairs):
            fields = {part[1:-1]: unquote(text) for part, text in pairs if part[:1] == "{"}
            if not fields or route.method not in routes:
                routes[route.method] = route, fields
    return routes
