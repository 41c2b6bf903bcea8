"""Fluster's jobs as real programs: the controller, an executor and the process engine, asked by the door.

Virtual time has no environment and no files, so that what a program finds about itself is looked at here.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.api.fluster._generated import cluster
from holdfast.app.entrance.pythons import RUNNER
from holdfast.app.time import SystemClock
from holdfast.compiled.codec import load_spec
from holdfast.controller.controller import Controller, ControllerSettings
from holdfast.domain.job import Resources
from holdfast.engines.process.engine import ProcessEngine
from holdfast.engines.process.files import ProcessLogs
from holdfast.executor.executor import Executor
from holdfast.fluster.launching import packed
from holdfast.ports.engine import NodeInfo
from holdfast.service.access.job_tokens import RunTokens
from holdfast.storage.blobs import BlobFiles
from tools.cases.fluster_door import ADDRESS, CasesDoor
from tools.cases.fluster_story import FINISHED
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.domain.access import Principal
    from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse

WORKER = "w1"
_LONGEST_S = 60.0
_LOOK_S = 0.05
_PROBE = """
import json, os, sys
attempt = int(os.environ["FLUSTER_ATTEMPT_ID"])
found = {"environ": dict(os.environ), "folder": os.getcwd(), "files": sorted(os.listdir())}
with open(os.path.join(PLACE, f"{attempt}.json"), "w") as file:
    json.dump(found, file)
for name in WRITES:
    open(name, "w").close()
sys.exit(1 if attempt < FAILURES else 0)
"""


class Calls:
    """Runs calls by the Python that runs this."""

    command: Sequence[str] = (sys.executable, "-u", str(RUNNER))
    index = installer = ""
    limit_s = 60.0

    def refusal(self, _by: Principal) -> str | None:
        """Refuse nobody."""
        return None


class _Dice:
    def draw(self) -> float:
        return 0.5


class Programs:
    """A server without its sockets, whose programs tell what they found."""

    def __init__(self, folder: Path, controller: str) -> None:
        """Start what starts programs, which are told that the controller is there."""
        self.folder = folder
        workspace = folder / "workspace"
        workspace.mkdir()
        (workspace / "job.py").write_text("")
        self._workspace = packed(workspace)
        store, clock = MemoryStore(), SystemClock()
        runs = folder / "runs"
        tokens = RunTokens(b"of the cases")
        settings = ControllerSettings(token_digest=tokens.digest)
        self._controller = Controller(
            store, clock=clock, dice=_Dice(), load_spec=load_spec, controller_epoch="cases", settings=settings
        )
        nodes = [NodeInfo(WORKER, Resources(64_000, 64 << 30))]
        blobs = BlobFiles(folder / "blobs")
        told = partial(tokens.told, controller)
        self._engine = ProcessEngine(runs, nodes=nodes, shim_idle_s=0.1, blob=blobs.path, identity=told)
        self._changed = threading.Event()
        self._engine.on_change(self._changed.set)
        self._executor = Executor(WORKER, self._engine, self, clock=clock)
        self.door = CasesDoor(store, clock, ProcessLogs(runs), Calls(), blobs)
        self._step()

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        """Run a tick with what the executor tells."""
        return self._controller.tick([request], look=True).responses[request.executor]

    def on_change(self, executor: str, wake: Callable[[], None]) -> None:
        """Nobody needs waking here."""

    def _step(self) -> None:
        self._changed.clear()
        self._executor.step()
        self._controller.tick(look=True)

    def run(self, name: str, *, failures: int = 0, writes: Sequence[str] = (), **sent: Any) -> list[Mapping[str, Any]]:  # noqa: ANN401 - of the message's fields
        """Run a job that fails so often before it succeeds, and return what each attempt found.

        Raises:
            Refused: It cannot be launched.
            TimeoutError: It does not end.
        """
        place = self.folder / f"told-{len(list(self.folder.iterdir()))}"
        place.mkdir()
        known = {"PLACE": str(place), "WRITES": list(writes), "FAILURES": failures}
        retry = cluster.RetryConfig(max_retries_failure=failures, initial_retry_delay_ms=0)
        call = pickle.dumps((exec, (_PROBE, known), {}))
        self.door.launch(name, serialized_entrypoint=call, bundle_blob=self._workspace, retry=retry, **sent)
        until = time.monotonic() + _LONGEST_S
        while self.door.status(name)["state"] not in FINISHED:
            if time.monotonic() > until:
                raise TimeoutError(self.door.status(name))
            self._step()
            self._changed.wait(_LOOK_S)
        return [json.loads((place / f"{attempt}.json").read_text()) for attempt in range(failures + 1)]

    def close(self) -> None:
        """Let go of the programs."""
        self._engine.close()


@contextmanager
def programs(controller: str = "") -> Iterator[Programs]:
    """Open a folder for programs, which goes with them; they are told that the controller is there."""
    with tempfile.TemporaryDirectory(prefix="holdfast-cases-") as folder:
        opened = Programs(Path(folder), controller or f"http://{ADDRESS}")
        try:
            yield opened
        finally:
            opened.close()
