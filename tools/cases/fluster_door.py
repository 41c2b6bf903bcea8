"""Fluster's door on a store of its own: messages in, messages out, and refusals as its clients are told of them."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.api.connect.calls import Rpc
from holdfast.api.connect.plain import plain
from holdfast.api.connect.refusals import Rejected
from holdfast.api.connect.serving import PROTO, read, rejected, written
from holdfast.api.fluster._generated import cluster
from holdfast.api.fluster.calls import CALLS, CONTROLLER
from holdfast.api.fluster.serving import FlusterDoor, Own
from holdfast.app.time import SortableIds
from holdfast.dialects.fluster.status import FlusterState
from holdfast.domain.access import Principal, Role
from holdfast.errors import HoldfastError
from holdfast.service.manifests.fluster import SYSTEM
from holdfast.service.operations.backend import Backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.message import Message

    from holdfast.domain.audit import Caller
    from holdfast.ports.blobs import Blobs
    from holdfast.ports.calls import CallRunner
    from holdfast.ports.clock import Clock
    from holdfast.ports.logs import LogReader
    from holdfast.ports.store import Store

ADDRESS = "cases:7070"
OWNER = Principal("cases", roles=(Role.ADMIN,))
REPLAY_S = 60.0
PROGRAM = b"#!/bin/sh\ntrue\n"
_OPEN: list[CasesDoor] = []


class Refused(Exception):
    """A call is refused."""

    def __init__(self, told: Rejected) -> None:
        """Remember the code, as the protocol spells it, and the sentence."""
        super().__init__(f"{told.code.name}: {told.message}")
        self.code, self.message = told.code.name, told.message


class CasesDoor:
    """The door, which is not open to anybody else."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        logs: LogReader | None = None,
        calls: CallRunner | None = None,
        blobs: Blobs | None = None,
    ) -> None:
        """Open it on a store, and on what else real programs need."""
        kept: Any = logs or _NoLogs()
        self.backend = Backend(store, clock, SortableIds(), kept, OWNER, calls=calls, blobs=blobs)
        self._door = FlusterDoor(self.backend, _nobody, lambda: None, lambda: None, Own(ADDRESS, REPLAY_S))
        _OPEN.append(self)

    def __call__(self, name: str, sent: Message | None = None, service: str = CONTROLLER) -> Any:  # noqa: ANN401 - its own type
        """Call a method, by what it is sent as, and return what is answered.

        Raises:
            Refused: It is refused.
        """
        method = CALLS.methods[f"/{service}/{name}"]
        caller = self.backend.caller(OWNER, origin="cases", request_id="cases")
        asked = Rpc(self.backend, caller, self._door)
        try:
            message = read(method.sent, PROTO, written(sent or method.sent(), PROTO))
            found = self._door.setup.answer(method, asked, message)
            answer = found.result() if isinstance(found, Future) else found
        except (Rejected, HoldfastError) as error:
            raise Refused(rejected(error)) from error
        return method.answered.FromString(written(answer, PROTO))

    def launch(self, name: str, **sent: Any) -> str:  # noqa: ANN401 - of the message's fields
        """Launch a job; returns its id in the store.

        Raises:
            Refused: It is refused.
        """
        fields = {"serialized_entrypoint": PROGRAM, **sent}
        self("LaunchJob", cluster.Controller.LaunchJobRequest(name=name, **fields))
        return self.id_of(name)

    def id_of(self, name: str) -> str:
        """Return the id in the store of the job of a name."""
        external = f"{SYSTEM}/{name}"
        return self.backend.store.named([external])[external].job_id

    def asked(self, name: str) -> cluster.JobStatus:
        """Return the status of a job as it is sent.

        Raises:
            Refused: There is no such job.
        """
        found: cluster.JobStatus = self("GetJobStatus", cluster.Controller.GetJobStatusRequest(job_id=name)).job
        return found

    def status(self, name: str) -> dict[str, Any]:
        """Return what is set of a job's status, its states by their names.

        Raises:
            Refused: There is no such job.
        """
        return told(self.asked(name))

    def terminate(self, name: str) -> None:
        """End a job and all below it.

        Raises:
            Refused: There is no such job.
        """
        self("TerminateJob", cluster.Controller.TerminateJobRequest(job_id=name))

    def register(self, job: str, name: str, address: str) -> None:
        """Say where a job answers under a name.

        Raises:
            Refused: It does not run.
        """
        sent = cluster.Controller.RegisterEndpointRequest(job_id=job, name=name, address=address)
        self("RegisterEndpoint", sent)

    def endpoints(self, prefix: str) -> list[dict[str, Any]]:
        """List the endpoints whose names begin so."""
        sent = cluster.Controller.ListEndpointsRequest(prefix=prefix)
        return [plain(one) for one in self("ListEndpoints", sent).endpoints]

    def listed(self) -> list[dict[str, Any]]:
        """List the statuses of all jobs."""
        return [told(one) for one in self("ListJobs").jobs]

    def workers(self) -> dict[str, dict[str, Any]]:
        """List the workers, by name."""
        return {one.worker_id: plain(one) for one in self("ListWorkers").workers}

    def close(self) -> None:
        """Answer no more."""
        self._door.close()


def told(status: cluster.JobStatus) -> dict[str, Any]:
    """Return what is set of a status, its states by their names."""
    found = plain(status)
    attempts = [{**one, "state": FlusterState(one["state"]).name} for one in found.get("attempts", ())]
    return {**found, "state": FlusterState(found["state"]).name, "attempts": attempts}


@contextmanager
def doors_closed() -> Iterator[None]:
    """Close, at the end, what doors are opened meanwhile."""
    try:
        yield
    finally:
        while _OPEN:
            _OPEN.pop().close()


async def _nobody(_: object) -> Caller:
    raise AssertionError


class _NoLogs:
    """Programs here print nothing and leave no result."""

    def read(self, *_arguments: object, **_options: object) -> bytes:
        return b""

    def result(self, *_arguments: object, **_options: object) -> None:
        return None
