"""Arrays: list, submit, read, explain, rerun, hold, preempt, cancel and delete them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_array
from holdfast.dialects.native.array import read_some_indexes, renamed
from holdfast.dialects.native.patch import patched
from holdfast.domain.access.grants import Right, Sight
from holdfast.domain.audit import Subject
from holdfast.domain.job import JobState
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.array.rerun import Wanted
from holdfast.ports.store import JobFilter
from holdfast.ports.workloads import EVERY
from holdfast.service.access.asking import asks
from holdfast.service.arrays import LARGEST_PAGE, ArrayPage, Arrays, Explained, Progress
from holdfast.service.manifests.reading import one_document, written_array
from holdfast.service.naming import engines_of
from holdfast.service.operations.jobs import JobBatches
from holdfast.service.operations.steering import Steers
from holdfast.service.pausing import paused_lines
from holdfast.service.reruns import Reran, reruns_of
from holdfast.service.reruns import rerun as run_again
from holdfast.service.reshape import Reshaped, reshape
from holdfast.service.steering.arrays import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.array.model import ArraySpec
    from holdfast.errors import Problem
    from holdfast.ports.workloads import WorkloadFilter
    from holdfast.service.manifests.text import Text

__all__ = ["LARGEST_PAGE", "ArrayPage", "Explained", "Progress", "Reran", "Wanted"]


class Submitted(Struct, frozen=True):
    """An array that was submitted, or would be."""

    array: Array
    spec: ArraySpec
    warnings: tuple[Problem, ...] = ()


class ArrayOperations(Steers[Array], frozen=True):
    """What can be asked of arrays."""

    rules = ARRAYS

    def _arrays(self, caller: Caller | None = None) -> Arrays:
        server = self.backend
        finder = None if caller is None else server.seeing(caller)
        return Arrays(server.store, server.clock, server.ids, server.nodes, server.secrets, finder)

    @asks(Right.WATCH, Subject.ARRAY)
    def page(
        self, caller: Caller, where: WorkloadFilter = EVERY, *, after: str = "", limit: int = LARGEST_PAGE
    ) -> ArrayPage:
        """List arrays by name."""
        return self._arrays().page(self.backend.seeing(caller).workloads(Array, where), after=after, limit=limit)

    @asks(Right.WATCH, Subject.ARRAY)
    def get(self, caller: Caller, ref: str) -> Progress:
        """Read how far an array is.

        Raises:
            NotFound: There is no such array.
        """
        return self._arrays().get(self._named(caller, Right.WATCH, ref))

    @asks(Right.WATCH, Subject.ARRAY)
    def progress(self, _caller: Caller, array: Array) -> Progress:
        """Read how far an array is of which something was asked."""
        return self._arrays().progress(array)

    @asks(Right.WATCH, Subject.ARRAY)
    def going_on(self, caller: Caller, tasks: Iterable[Job]) -> Sequence[Progress]:
        """Read how far the arrays of some tasks are."""
        seeing = self.backend.seeing(caller)
        hidden = {Sight.NOTHING, Sight.EXISTENCE}
        return self._arrays().going_on([job for job in tasks if seeing.sight(job) not in hidden])

    @asks(Right.SUBMIT, Subject.ARRAY)
    def submit(self, caller: Caller, body: Text, *, key: str | None = None, dry_run: bool = False) -> Submitted:
        """Submit an array, whose name must be new; see ``Arrays.create``."""
        written = written_array(one_document(body), partial(engines_of, self.backend.store))
        row = self._arrays(caller).create(written, by=caller, key=key, dry_run=dry_run)
        if not dry_run:
            self.backend.count(1, 0)
        return Submitted(row, load_array(row.spec), written.warnings)

    @asks(Right.CHANGE, Subject.ARRAY)
    def change(
        self, caller: Caller, ref: str, body: Text, *, dry_run: bool = False
    ) -> tuple[Reshaped, Sequence[Problem]]:
        """Give an array the limits that a manifest has, and return what is dubious in that; see ``reshape``."""
        written = written_array(one_document(body), partial(engines_of, self.backend.store))
        ref = self._named(caller, Right.CHANGE, ref)
        return reshape(self._arrays(), ref, written, by=caller, dry_run=dry_run), written.warnings

    @asks(Right.WATCH, Subject.ARRAY)
    def task(self, caller: Caller, ref: str, index: int) -> Job:
        """Read the job that is a task of an array.

        Raises:
            NotFound: There is no such array, or no such task of it.
        """
        found = self._arrays().task(self._named(caller, Right.WATCH, ref), index)
        return self.backend.seeing(caller).jobs([found])[0]

    @asks(Right.WATCH, Subject.ARRAY)
    def why(self, caller: Caller, ref: str) -> tuple[Explained, Sequence[Array], Sequence[str]]:
        """Explain where an array is; with the arrays that run tasks of it again, and that nothing is started, if so.

        Raises:
            NotFound: There is no such array.
        """
        found = self._arrays().explain(self._named(caller, Right.WATCH, ref))
        array, seeing = found.progress.array, self.backend.seeing(caller)
        groups = [evolve(group, tasks=tuple(seeing.jobs(group.tasks))) for group in found.groups]
        paused = paused_lines(self.backend.store, ended=bool(array.ended))
        reruns = [one for one in reruns_of(self.backend.store, array) if seeing.knows(one)]
        return evolve(found, groups=groups), reruns, paused

    @asks(Right.SUBMIT, Subject.ARRAY)
    def rerun(  # noqa: PLR0913 - what there is to say of a rerun
        self,
        caller: Caller,
        ref: str,
        wanted: Wanted,
        *,
        indices: str | None = None,
        changes: Mapping[str, Any] | None = None,
        name: str | None = None,
        dry_run: bool = False,
    ) -> Reran:
        """Submit an array of some tasks of another one; see ``reruns.rerun``.

        Args:
            caller: Who asks.
            ref: The other one.
            wanted: Which tasks, by how they ended.
            indices: Which of them, such as ``3,7-9``.
            changes: Fields of the tasks' manifest that are changed, in the short form.
            name: Of the new array; by default one that nobody has.
            dry_run: Check everything and store nothing.

        Raises:
            InvalidManifest: The indices, the changes or the name are not valid; with every problem.
        """

        def changed(spec: ArraySpec, unused: str) -> ArraySpec:
            job = patched(spec.job, changes) if changes else spec.job
            return renamed(evolve(spec, job=job), unused if name is None else name)

        if indices is not None:
            wanted = evolve(wanted, indexes=read_some_indexes(indices))
        ref = self._named(caller, Right.LOGS, ref)  # the new one is its own, and so what it is told
        found = run_again(self._arrays(caller), ref, wanted, changed, by=caller, dry_run=dry_run)
        if not dry_run:
            self.backend.count(1, 0)
        return found

    @asks(Right.PREEMPT, Subject.ARRAY)
    def preempt(self, caller: Caller, ref: str, reason: str = "") -> Progress:
        """Ask for the places of all tasks of an array that run; policies decide which of them run again.

        Raises:
            NotFound: There is no such array.
        """
        found = self._arrays().get(self._named(caller, Right.PREEMPT, ref))
        running = JobFilter(job_set=found.array.id, states=frozenset({JobState.RUNNING}))
        JobBatches(self.backend).preempt(caller, running, reason)
        return found
