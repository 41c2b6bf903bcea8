"""Iris' door on a Holdfast in virtual time: messages in, messages out, and refusals as its clients are told of them."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from holdfast.api.budget import MemoryBudget
from holdfast.api.connect.calls import Rpc
from holdfast.api.connect.refusals import Rejected
from holdfast.api.connect.serving import Setup, rejected
from holdfast.api.iris._generated import controller, job
from holdfast.api.iris.calls import CALLS, CONTROLLER, ENDPOINTS, LOGS
from holdfast.api.iris.serving import IrisDoor, IrisSettings, TaskServer
from holdfast.app.time import SortableIds
from holdfast.domain.access import Principal, Role
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import HoldfastError
from holdfast.ports.logs import LogPart, LogTimes
from holdfast.service.operations.backend import Backend
from tests.unit.conftest import Lab

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from holdfast.domain.audit import Caller
    from holdfast.ports.engine import RunOrder

C = controller.Controller
OWNER = Principal("ann", roles=(Role.ADMIN,))
AGAIN_S = 60.0
FOREVER = SimulatedRun(duration_s=None)


class Printed:
    """What tasks printed, by attempt and rank: each line with the moment at which it was there."""

    def __init__(self) -> None:
        self.lines: dict[tuple[str, int, int], list[tuple[float, str]]] = {}

    def _data(self, key: tuple[str, int, int]) -> tuple[bytes, LogTimes]:
        data, sizes, moments = b"", list[int](), list[float]()
        for at, text in self.lines.get(key, ()):
            data += text.encode() + b"\n"
            sizes.append(len(data))
            moments.append(at)
        return data, LogTimes(sizes, moments)

    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int, stderr: bool = False) -> LogPart:
        assert not stderr
        data, _ = self._data((job_id, attempt, rank))
        return LogPart(data[offset : offset + limit], len(data), offset)

    def times(self, job_id: str, attempt: int, rank: int, *, stderr: bool = False) -> LogTimes:
        assert not stderr
        return self._data((job_id, attempt, rank))[1]

    def result(self, *_: object, **__: object) -> bytes | None:
        return None


class IrisLab(Lab):
    """Launch by the door, let time pass, and ask by the door."""

    def __init__(self) -> None:
        super().__init__()
        self.printed = Printed()
        self.backend = Backend(self.store, self.clock, SortableIds(), self.printed, OWNER)
        place = IrisSettings(TaskServer("http://here:1", "/usr/bin/python3"), AGAIN_S)
        self.door = IrisDoor(Setup(self.backend, _nobody, ThreadPoolExecutor(8), MemoryBudget()), place)

    def __call__(self, name: str, sent: Message | None = None, service: str = CONTROLLER) -> Any:  # noqa: ANN401 - its own type
        """Call a method, and return what is answered.

        Raises:
            Rejected: It is refused.
        """
        method = CALLS.methods[f"/{service}/{name}"]
        asked = Rpc(self.backend, self.backend.caller(OWNER, origin="test", request_id="test"), self.door)
        assert method.call is not None
        try:
            found = method.call(asked, sent or method.request())
            return found.result() if isinstance(found, Future) else found
        except HoldfastError as error:
            raise rejected(error) from error

    def refused(self, name: str, sent: Message | None = None, service: str = CONTROLLER) -> str:
        """Call a method, and return ``OK`` or the code of its refusal."""
        try:
            self(name, sent, service)
        except Rejected as error:
            return error.code.name
        return "OK"

    def launch(
        self,
        name: str,
        plan: Callable[[RunOrder], SimulatedRun] | SimulatedRun = FOREVER,
        **more: Any,  # noqa: ANN401 - fields by name
    ) -> str:
        """Launch a job whose runs do as planned, and return ``OK`` or the code of its refusal."""
        self.plans[name.rpartition("/")[2].lower()] = plan if callable(plan) else lambda _: plan
        entry = job.RuntimeEntrypoint(run_command=job.CommandEntrypoint(argv=["true"]))
        needs = job.ResourceSpecProto(cpu_millicores=10)
        asked = {"name": name, "entrypoint": entry, "resources": needs, "replicas": 1, **more}
        return self.refused("LaunchJob", C.LaunchJobRequest(**asked))

    def id_of(self, name: str) -> str:
        """Return the id in the store of the job that has a name."""
        external = f"iris/{name}"
        return self.store.named([external])[external].job_id

    def status(self, name: str) -> job.JobStatus:
        """Return the status of a job."""
        found: job.JobStatus = self("GetJobStatus", C.GetJobStatusRequest(job_id=name)).job
        return found

    def state(self, name: str) -> str:
        """Return the state of a job, empty of one that is not there."""
        found = self("GetJobState", C.GetJobStateRequest(job_ids=[name])).states
        return job.JobState.Name(found[name])[10:] if name in found else ""

    def tasks(self, name: str) -> list[job.TaskStatus]:
        """Return the tasks of a job."""
        return [*self("ListTasks", C.ListTasksRequest(job_id=name)).tasks]

    def endpoints(self, name: str, sent: Message) -> Any:  # noqa: ANN401 - its own type
        """Call a method of the service for endpoints."""
        return self(name, sent, ENDPOINTS)

    def logs(self, sent: Message) -> Any:  # noqa: ANN401 - its own type
        """Read lines."""
        return self("FetchLogs", sent, LOGS)

    def close(self) -> None:
        """Answer no more."""
        self.door.close()


async def _nobody(_: object) -> Caller:
    raise AssertionError
