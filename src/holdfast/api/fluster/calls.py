"""The table of calls that Fluster's services answer; each module registers its own.

The other calls of the services are not implemented, and their refusals say why.
"""

from __future__ import annotations

from holdfast.api.connect.calls import Methods
from holdfast.api.fluster._generated.pool import PROTOCOL

CONTROLLER = "fluster.cluster.ControllerService"
WORKER = "fluster.cluster.WorkerService"
PREFIX = "/fluster.cluster."
"""The prefix of the paths of all calls."""
CALLS = Methods(PROTOCOL, CONTROLLER, WORKER)
_EXECUTORS = (
    "workers of Fluster do not join this server: jobs run on its own executors, which report by its own protocol"
)
CALLS.leave_out("RegisterWorker", CONTROLLER, f"RegisterWorker is not implemented here: {_EXECUTORS}")
CALLS.leave_out("ReportJobState", CONTROLLER, f"ReportJobState is not implemented here: {_EXECUTORS}")
CALLS.leave_out("RunJob", WORKER, "RunJob is not implemented here: launch jobs with ControllerService/LaunchJob")
CALLS.leave_out("KillJob", WORKER, "KillJob is not implemented here: end jobs with ControllerService/TerminateJob")
