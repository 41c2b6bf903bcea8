"""Drawn mutants that survive with reason: what they change makes no difference, or none that anybody was promised."""

from __future__ import annotations

from typing import NamedTuple


class Argued(NamedTuple):
    """A mutant that need not be noticed."""

    file: str
    """From ``src/holdfast`` on."""
    where: str
    before: str
    after: str
    why: str

    @property
    def source(self) -> str:
        """The file, from the root of the repository on."""
        return f"src/holdfast/{self.file}"

    @property
    def about(self) -> tuple[str, str, str, str]:
        """Which mutants it is about: all that read the same there."""
        return self.source, self.where, self.before, self.after


ARGUED = (
    Argued(
        "controller/workloads/gangs.py", "Gangs.delete", "False", "True", "A gang takes the argument and ignores it."
    ),
    Argued(
        "domain/workloads/children.py",
        "gang_of",
        "job.reason if phase is ChildPhase.FAILED else ''",
        "job.reason",
        "Nobody reads why a job is as it is unless it has failed; its owner is only looked at once more.",
    ),
    Argued(
        "controller/workloads/owners.py",
        "Owners.update",
        "self._state.queue.add(self._kind(job_id).name, job_id)",
        "self._state.queue.add(job_id, self._kind(job_id).name)",
        "What may be changed of a set while it runs reaches its jobs by orders of the look that follows, too.",
    ),
    Argued(
        "controller/workloads/owners.py",
        "Owners._see",
        "return",
        "pass",
        "An owner that is looked at although none of its jobs has changed decides what it decided before.",
    ),
    Argued(
        "domain/workloads/kubejob/programs.py",
        "Programs._context",
        "-1 if barrier.previous is None else barrier.previous",
        "-1",
        "All pods of a set pass a barrier before the next restart in place: none is more than one behind.",
    ),
    Argued(
        "controller/reconcile.py",
        "Reconciler.run",
        "turns < _MOST_TURNS",
        "turns <= _MOST_TURNS",
        "The bound is larger than what anything needs; what is left comes in the next tick.",
    ),
    Argued(
        "domain/workloads/gang/flight.py",
        "Flight.next_look",
        "False",
        "True",
        "What is past its time moves on in the look that finds it so, and each second's sweep looks again.",
    ),
    Argued(
        "domain/placement/fit.py",
        "_short_of_devices",
        "{place.key: all_free(place.devices) for place in places} if devices is None else devices",
        "devices",
        "Whoever asks for nodes with devices says what is free of them; else all are taken for free either way.",
    ),
    Argued(
        "domain/policy/compiled.py",
        "_Dimension.__init__",
        "values is not None",
        "values is None",
        "An index that rejects fewer rules leaves more to their own matchers, which decide.",
    ),
    Argued(
        "storage/rules.py",
        "first_jobs",
        "job.child is not None and job.child.index == 0",
        "job.child is not None or job.child.index == 0",
        "Two sets that share a job share a first one, so comparing all of them finds the same.",
    ),
)
