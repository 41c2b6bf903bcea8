"""The tools about arrays, many tasks of one program: submit, look, why, rerun and cancel; each task counts as a job."""

from typing import Annotated, Any

from pydantic import Field

from holdfast.agents.tools import JobRequest, Tools, given, plain
from holdfast.client import Client
from holdfast.errors import HoldfastError
from holdfast.wire.arrays import ArrayRerun, ArrayView

Reference = Annotated[str, Field(description="An array's name, or its id.")]
Reason = Annotated[str, Field(description="The reason, recorded for others to see.")]


class ArrayRequest(JobRequest):
    """A program to run many times: for each index, line, or combination of values; one of these three is required."""

    indices: Annotated[str | None, Field(description="A task for each number: 0-99, or 0-9,20.")] = None
    lines: Annotated[list[str], Field(description="A task for each text, which {line} stands for.")] = Field(
        default_factory=list
    )
    matrix: Annotated[
        dict[str, list[Any]],
        Field(description="A task for every combination of values; {NAME} is the task's own."),
    ] = Field(default_factory=dict)
    max_running: Annotated[int | None, Field(ge=1, description="Tasks that run at once.")] = None
    max_failures: Annotated[int | None, Field(ge=0, description="With more failures, the rest is cancelled.")] = None


class ArrayTools(Tools):
    """The functions that an agent calls, including those for arrays."""

    def get_array(self, array: Reference) -> dict[str, Any]:
        """Read the progress of an array: its state, and how many tasks wait, run, succeeded and failed."""
        with self._surroundings.connect() as client:
            return {**plain(self._seen_array(client, array)), **self._note()}

    def why_array(self, array: Reference) -> dict[str, Any]:
        """Explain the state of an array, with failed tasks grouped by their failure; task 3 is the job NAME-3."""
        with self._surroundings.connect() as client:
            return plain(client.array_why(self._seen_array(client, array).id))

    def submit_array(self, array: ArrayRequest) -> dict[str, Any]:
        """Submit many tasks of one program as an array; returns at once with its id and its number of tasks."""
        manifest = self._manifest(array, "array")
        section = {
            "indices": array.indices,
            "lines": array.lines,
            "matrix": array.matrix,
            "maxRunning": array.max_running,
            "maxFailures": array.max_failures,
        }
        manifest["spec"]["array"] = given(section)
        with self._surroundings.connect() as client:
            count = client.check_array(manifest).total
            self._allowance.take(count)
            try:
                accepted = client.submit_array(manifest)
            except HoldfastError:
                self._allowance.give_back(count)
                raise
        return {**plain(accepted), **self._note()}

    def rerun_array(
        self,
        array: Reference,
        causes: Annotated[
            list[str] | None, Field(description="Only tasks that failed with one of these causes.")
        ] = None,
        indices: Annotated[
            str | None, Field(description="Only these indexes of the failed tasks, such as 3,7-9.")
        ] = None,
        memory: Annotated[str | None, Field(description="With a different memory limit, such as 4Gi.")] = None,
    ) -> dict[str, Any]:
        """Rerun the failed tasks of an array, as a new array that keeps indexes and checkpoints."""
        change = {"resources": {"memory": memory}} if memory else {}
        fields = {"failed": True, "causes": causes or [], "indices": indices, "set": change}
        changes = ArrayRerun(**given(fields))
        with self._surroundings.connect() as client:
            original = self._changeable_array(client, array)
            count = client.rerun_array(original.id, changes, dry_run=True).total
            self._allowance.take(count)
            try:
                accepted = client.rerun_array(original.id, changes)
            except HoldfastError:
                self._allowance.give_back(count)
                raise
        return {**plain(accepted), **self._note()}

    def cancel_array(self, array: Reference, reason: Reason = "") -> dict[str, Any]:
        """Cancel an array: no more tasks are created, and running ones are stopped."""
        with self._surroundings.connect() as client:
            array_view = self._changeable_array(client, array)
            return {**plain(client.cancel_array(array_view.id, reason=reason)), **self._note()}

    def _seen_array(self, client: Client, reference: str) -> ArrayView:
        array = client.array(reference)
        self._limits.require_sight(array, "array")
        return array

    def _changeable_array(self, client: Client, reference: str) -> ArrayView:
        array = client.array(reference)
        self._limits.require_change(array, array.labels, "array")
        return array
