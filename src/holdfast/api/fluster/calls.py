"""The table of what Fluster's services are answered with; each module of a noun registers its calls.

What the services declare beside them is not implemented, and says why.
"""

from __future__ import annotations

from holdfast.api.connect.calls import Methods
from holdfast.api.fluster._generated.pool import PROTOCOL

CONTROLLER = "fluster.cluster.ControllerService"
WORKER = "fluster.cluster.WorkerService"
PREFIX = "/fluster.cluster."
"""Of the paths of all calls."""
CALLS = Methods(PROTOCOL, CONTROLLER, WORKER)
_EXECUTORS = (
    "workers of Fluster do not join this server: jobs run on its own executors, which report by its own protocol"
)
CALLS.leave_out("RegisterWorker", CONTROLLER, f"RegisterWorker is not implemented here: {_EXECUTORS}")
CALLS.leave_out("ReportJobState", CONTROLLER, f"ReportJobState is not implemented here: {_EXECUTORS}")
CALLS.leave_out("RunJob", WORKER, "RunJob is not implemented here: launch jobs with ControllerService/LaunchJob")
CALLS.leave_out("KillJob", WORKER, "KillJob is not implemented here: end jobs with ControllerService/TerminateJob")
