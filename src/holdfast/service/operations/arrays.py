"""Arrays: list, submit, read, explain, rerun, hold, preempt, cancel and delete them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_array
from holdfast.dialects.native.array import read_some_indexes, renamed
from holdfast.dialects.native.patch import patched
from holdfast.domain.access.grants import Right, Sight
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import JobState
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.array.model import Array, task_name
from holdfast.domain.workloads.array.rerun import TaskChoice
from holdfast.errors import Internal, NotFound
from holdfast.ports.store import JobFilter
from holdfast.ports.workloads import EVERY
from holdfast.service.access.asking import asks
from holdfast.service.arrays import array_named, explained, progress_of, submitted
from holdfast.service.manifests.reading import one_document, written_array
from holdfast.service.naming import engines_of
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.steering import OwnerPage, Steers
from holdfast.service.quarantined import itself, readable
from holdfast.service.refusals import audited
from holdfast.service.reruns import Reran, reruns_of
from holdfast.service.reruns import rerun as run_again
from holdfast.service.reshape import Reshaped, reshape
from holdfast.service.steering.arrays import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.array.model import ArraySpec
    from holdfast.domain.workloads.array.progress import Progress
    from holdfast.domain.workloads.explanation import Explanation
    from holdfast.errors import Problem
    from holdfast.ports.workloads import Unreadable, WorkloadFilter
    from holdfast.service.manifests.text import Text

__all__ = ["Reran", "TaskChoice"]


LARGEST_PAGE = 1000


class SubmittedArray(Struct, frozen=True):
    """An array that was submitted, or would be in a dry run."""

    array: Array
    spec: ArraySpec
    warnings: tuple[Problem, ...] = ()


class ArrayOperations(Steers[Array], frozen=True):
    """The operations on arrays."""

    rules = ARRAYS

    def _progress(self, array: Array) -> Progress:
        return progress_of(array, self.backend.store, self.backend.clock.now())

    def _found(self, caller: Caller, right: Right, ref: str) -> Array:
        return array_named(self.backend.store, self._named(caller, right, ref))

    @asks(Right.WATCH, Subject.ARRAY)
    def page(
        self, caller: Caller, where: WorkloadFilter = EVERY, *, after: str = "", limit: int = LARGEST_PAGE
    ) -> OwnerPage[Progress]:
        """List arrays by name."""
        unreadable: list[Unreadable] = []
        where = self.backend.seeing(caller).workloads(Array, where)
        arrays = self.backend.store.workloads(Array, where, after=after, limit=limit + 1, unreadable=unreadable.append)
        shown, last = arrays[:limit], None if len(arrays) <= limit else arrays[limit - 1].name
        return OwnerPage.until(last, self._readable(shown, unreadable), unreadable)

    def _readable(self, arrays: Iterable[Array], unreadable: list[Unreadable]) -> Sequence[Progress]:
        """Read the progress of arrays; damaged ones are added to ``unreadable`` instead."""
        store, now = self.backend.store, self.backend.clock.now()
        quarantined = store.quarantined()
        return readable(arrays, lambda array: progress_of(array, store, now, quarantined), itself, unreadable.append)

    @asks(Right.WATCH, Subject.ARRAY)
    def get(self, caller: Caller, ref: str) -> Progress:
        """Read the progress of an array.

        Raises:
            NotFound: The array does not exist.
        """
        return self._progress(self._found(caller, Right.WATCH, ref))

    @asks(Right.WATCH, Subject.ARRAY)
    def progress(self, _caller: Caller, array: Array) -> Progress:
        """Read the progress of an array that the caller has acted on."""
        return self._progress(array)

    @asks(Right.WATCH, Subject.ARRAY)
    def going_on(self, caller: Caller, tasks: Iterable[Job]) -> Sequence[Progress]:
        """Read the progress of the unfinished arrays that some tasks belong to, each once."""
        seeing = self.backend.seeing(caller)
        hidden = {Sight.NOTHING, Sight.EXISTENCE}
        ids = dict.fromkeys(task.child.set_id for task in tasks if task.child and seeing.sight(task) not in hidden)
        try:
            arrays_found = self.backend.store.workloads_by_id(Array, list(ids))
        except Internal:  # one of them is damaged; a request for it says so
            return []
        return self._readable(
            (
                arrays_found[array_id]
                for array_id in ids
                if array_id in arrays_found and not arrays_found[array_id].ended
            ),
            [],
        )

    @asks(Right.SUBMIT, Subject.ARRAY)
    def submit(self, caller: Caller, body: Text, *, key: str | None = None, dry_run: bool = False) -> SubmittedArray:
        """Submit an array with a new name. Its tasks are created as places become free. See ``submitted``."""
        server = self.backend
        written = written_array(one_document(body), partial(engines_of, server.store))
        with audited(server.store, None if dry_run else caller, Act.CREATE, Subject.ARRAY, written.spec.name):
            row = submitted(server.submitter(caller), written, key=key, dry_run=dry_run)
        if not dry_run:
            server.count(1, 0)
        return SubmittedArray(row, load_array(row.spec), written.warnings)

    @asks(Right.CHANGE, Subject.ARRAY)
    def change(
        self, caller: Caller, ref: str, body: Text, *, dry_run: bool = False
    ) -> tuple[Reshaped, Sequence[Problem]]:
        """Give an array the limits of a manifest; returns also the manifest's warnings. See ``reshape``."""
        store, clock = self.backend.store, self.backend.clock
        written = written_array(one_document(body), partial(engines_of, store))
        ref = self._named(caller, Right.CHANGE, ref)
        return reshape(store, clock, ref, written, caller=caller, dry_run=dry_run), written.warnings

    @asks(Right.WATCH, Subject.ARRAY)
    def task(self, caller: Caller, ref: str, index: int) -> Job:
        """Read the job of an array's task.

        Raises:
            NotFound: The array or the task does not exist, or the task has not been created yet.
        """
        array = self._found(caller, Right.WATCH, ref)
        try:
            job = self.backend.store.job(f"{array.id}-{task_name(array.name, index)}")
        except NotFound:
            if index in set(load_array(array.spec).every_index()):
                msg = f"task {index} of array {array.name!r} has not been created yet"
                raise NotFound(msg, hint="tasks are created as places become free") from None
            msg = f"array {array.name!r} has no task {index}"
            raise NotFound(msg) from None
        return self.backend.seeing(caller).jobs([job])[0]

    @asks(Right.WATCH, Subject.ARRAY)
    def why(self, caller: Caller, ref: str) -> Explanation[Progress]:
        """Explain an array's state; includes the arrays that rerun its tasks.

        Raises:
            NotFound: The array does not exist.
        """
        explanation, seeing = explained(self.get(caller, ref), self.backend.store), self.backend.seeing(caller)
        groups = [evolve(group, jobs=tuple(seeing.jobs(group.jobs))) for group in explanation.groups]
        reruns = [rerun for rerun in reruns_of(self.backend.store, explanation.of.array) if seeing.knows(rerun)]
        return evolve(explanation, groups=groups, reruns=reruns)

    @asks(Right.SUBMIT, Subject.ARRAY)
    def rerun(  # noqa: PLR0913 - what there is to say of a rerun
        self,
        caller: Caller,
        ref: str,
        choice: TaskChoice,
        *,
        indices: str | None = None,
        changes: Mapping[str, Any] | None = None,
        name: str | None = None,
        dry_run: bool = False,
    ) -> Reran:
        """Submit an array of some tasks of another one; see ``reruns.rerun``.

        Args:
            caller: The caller.
            ref: The other array.
            choice: Which tasks, by how they ended.
            indices: Which of them, such as ``3,7-9``.
            changes: Changed fields of the tasks' manifest, in the short form.
            name: The new array's name; by default an unused one.
            dry_run: Check everything and store nothing.

        Raises:
            InvalidManifest: The indices, the changes or the name are not valid; with every problem.
        """

        def changed(spec: ArraySpec, unused: str) -> ArraySpec:
            job = patched(spec.job, changes) if changes else spec.job
            return renamed(evolve(spec, job=job), unused if name is None else name)

        if indices is not None:
            choice = evolve(choice, indexes=read_some_indexes(indices))
        ref = self._named(caller, Right.LOGS, ref)  # the caller owns the new array, and so sees what it takes over
        made_again = run_again(self.backend.submitter(caller), ref, choice, changed, dry_run=dry_run)
        if not dry_run:
            self.backend.count(1, 0)
        return made_again

    @asks(Right.PREEMPT, Subject.ARRAY)
    def preempt(self, caller: Caller, ref: str, reason: str = "") -> Progress:
        """Preempt all running tasks of an array; policies decide which of them run again.

        Raises:
            NotFound: The array does not exist.
        """
        progress = self._progress(self._found(caller, Right.PREEMPT, ref))
        running = JobFilter(job_set=progress.array.id, states=frozenset({JobState.RUNNING}))
        JobBatches(self.backend).preempt(caller, running, reason)
        return progress
