"""A submitted array: its progress, why its tasks failed, and how to rerun them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, cast

from holdfast.sdk.job import Job
from holdfast.sdk.manifest import Options, manifest_of
from holdfast.sdk.states import ENDED
from holdfast.sdk.waiting import Rests
from holdfast.wire.arrays import ArrayRerun

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.client import Client as Api
    from holdfast.sdk.manifest import Manifest
    from holdfast.wire.arrays import ArrayView, ArrayWhy


class ArrayOptions(Options, total=False):
    """Options of an array: one of the first three, and the options of a job."""

    indices: str | Iterable[int]
    """A task for each number, such as ``"0-99"`` or ``range(100)``."""
    lines: Iterable[str]
    """A task for each text."""
    matrix: Mapping[str, Any]
    """A task for every combination of values: ``{"lr": [0.1, 0.01], "seed": "1..5"}``."""
    max_running: int
    """How many run at once."""
    max_failures: int
    """After more failures than this, the other tasks are cancelled."""
    success: Literal["all", "any"] | int
    """How many tasks have to succeed; by default all."""


_OF_ARRAYS = ArrayOptions.__annotations__.keys() - Options.__annotations__.keys()


class Array:
    """Many tasks of one program; each task is a job of its own."""

    def __init__(self, api: Api, array_id: str, name: str) -> None:
        self._api = api
        self.id = array_id
        self.name = name

    def __repr__(self) -> str:
        return f"<Array {self.name} {self.id}>"

    @property
    def state(self) -> str:
        """Its present state: Queued, Waiting, Held, Running, Stopping, Succeeded, Failed, Cancelled or Deleting."""
        return self.view().state

    def view(self) -> ArrayView:
        """Read its progress: how many tasks wait, run, succeeded and failed, and when the last is expected to end."""
        return self._api.array(self.id)

    def why(self) -> ArrayWhy:
        """Explain its state, with failed tasks grouped by failure and decision."""
        return self._api.array_why(self.id)

    def task(self, index: int) -> Job[None]:
        """Return the job of the task with this index.

        Raises:
            NotFound: There is no such task, or it has not been created yet.
        """
        job = self._api.array_task(self.id, index)
        return Job(self._api, job.id, job.name)

    def logs(self, index: int, *, attempt: int | None = None, rank: int = 0, stderr: bool = False) -> str:
        """Read what a task has printed so far, in its last attempt or another one."""
        return self.task(index).logs(attempt=attempt, rank=rank, stderr=stderr)

    def wait(self, timeout: float | None = None) -> str:
        """Wait until it has ended, and return its state.

        Raises:
            TimeoutError: It has not ended within ``timeout`` seconds.
        """
        rests, give_up = Rests(), None if timeout is None else time.monotonic() + timeout
        before = self.view()
        while before.state not in ENDED:
            rest_s = rests.after(news=False, things=1)
            if give_up is not None and (rest_s := min(rest_s, give_up - time.monotonic())) <= 0:
                msg = f"{before.total - before.succeeded - before.failed - before.cancelled} of {before.total} tasks of"
                msg = f"{msg} {self.name} have not ended within {timeout:g} s"
                raise TimeoutError(msg)
            time.sleep(rest_s)
            before = self.view()
        return before.state

    def cancel(self, reason: str = "") -> None:
        """Request that no more tasks are created, and that those that exist are cancelled."""
        self._api.cancel_array(self.id, reason=reason)

    def hold(self, reason: str = "") -> None:
        """Request that no more tasks start until it is released; running tasks continue."""
        self._api.hold_array(self.id, reason=reason)

    def release(self, reason: str = "") -> None:
        """Request its release."""
        self._api.release_array(self.id, reason=reason)

    def preempt(self, reason: str = "") -> None:
        """Request that its running tasks are preempted; policies decide which of them run again."""
        self._api.preempt_array(self.id, reason=reason)

    def rerun(
        self,
        *,
        failed: bool = False,
        cancelled: bool = False,
        causes: Sequence[str] = (),
        indices: str | Iterable[int] | None = None,
        name: str | None = None,
        change: Mapping[str, Any] | None = None,
    ) -> Array:
        """Rerun some of its tasks as a new array; they keep their indexes and checkpoint folders.

        Args:
            failed: Tasks that failed after their retries; the default.
            cancelled: Tasks that were cancelled, or never created because the array ended.
            causes: Tasks that failed with one of these causes, categories or subcategories.
            indices: Only these tasks, such as ``"3,7-9"``; without the arguments above, however they ended.
            name: The name of the new array.
            change: Changes, in the fields of a job's manifest: ``{"resources": {"memory": "4Gi"}}``.

        Raises:
            HoldfastError: It was refused, or there is nothing to rerun.
        """
        fields: dict[str, Any] = {
            "failed": failed or not (cancelled or causes or indices is not None),
            "cancelled": cancelled,
            "causes": list(causes),
            "indices": written_indices(indices),
            "name": name,
            "set": dict(change or {}),
        }
        array_rerun = ArrayRerun(
            **{field: value for field, value in fields.items() if value not in (None, [], {}, False)}
        )
        created = self._api.rerun_array(self.id, array_rerun)
        return Array(self._api, created.id, created.name)


def written_indices(indices: str | Iterable[int] | None) -> str | None:
    """Write indexes as a manifest has them: ``3,7,9``."""
    return indices if indices is None or isinstance(indices, str) else ",".join(map(str, indices))


def array_manifest(work: Sequence[str] | str, options: ArrayOptions) -> Manifest:
    """Build the manifest of an array; the server checks that it says which tasks there are.

    Raises:
        InvalidRequest: With every option that is wrong.
    """
    matrix = {name: _values(values) for name, values in options.get("matrix", {}).items()}
    fields = {
        "indices": written_indices(options.get("indices")),
        "lines": list(options["lines"]) if "lines" in options else None,
        "matrix": matrix or None,
        "maxRunning": options.get("max_running"),
        "maxFailures": options.get("max_failures"),
        "success": options.get("success"),
    }
    rest = {name: value for name, value in options.items() if name not in _OF_ARRAYS}
    manifest = manifest_of(work, cast("Options", rest))
    manifest["spec"]["array"] = {name: value for name, value in fields.items() if value is not None}
    return manifest


def _values(value: object) -> object:
    return list(value) if isinstance(value, range | tuple | set) else value
