"""Says which parts of a manifest local processes do not support, and which of them make it impossible to run.

Accepting a set that names only images would make every one of its pods fail: without a command there is nothing to
start. Engines that run real pods need none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.workloads.jobset.model import CONTROLLER, JobSetSpec
from holdfast.domain.workloads.kubejob.reconcile import CONTROLLER as JOB_CONTROLLER

if TYPE_CHECKING:
    from holdfast.dialects.jobset.program import ReadProgram
    from holdfast.dialects.jobset.reading import KubeManifest
    from holdfast.dialects.jobset.wording import Notes

TEMPLATE = "template.spec.template.spec"
"""Where a replicated job's pod is, in upstream's form."""
_NO_COMMAND = "Holdfast runs programs, not images, so it does not know the image's own command"
_IGNORED = "as it is, it is ignored"
_HINT = "write the program out: command: [PROGRAM, ARGUMENT...]"


def check_runnable(manifest: KubeManifest, notes: Notes) -> None:
    """Note the parts of a manifest that cannot be run.

    Args:
        manifest: A job set or a Job that was read.
        notes: Where to note them; has the manifest's programs.
    """
    for path, program in notes.programs.items():
        _check_pod(program, notes, path)
    if not isinstance(manifest, JobSetSpec):
        _check_managed(manifest.spec.managed_by, JOB_CONTROLLER, notes)
        return
    _check_managed(manifest.managed_by, CONTROLLER, notes)
    if manifest.volume_claims:
        message = "is ignored: programs share the machine's files, and nothing is claimed"
        notes.warn("spec.volumeClaimPolicies", message)
    for place, group in enumerate(manifest.replicated_jobs):
        _check_managed(group.job.managed_by, JOB_CONTROLLER, notes, f"spec.replicatedJobs[{place}].template.spec")


def _check_managed(manager: str | None, ours: str, notes: Notes, path: str = "spec") -> None:
    if manager not in {None, ours}:
        notes.warn(f"{path}.managedBy", f"is managed by {manager}, so nothing of it is run here")


def _check_pod(program: ReadProgram, notes: Notes, path: str) -> None:
    if not program.has_command:
        notes.forgivable(f"{path}.containers[0].command", f"Required value: {_NO_COMMAND}", hint=_HINT)
    if program.gated:
        message = "Forbidden: nobody opens gates here, pods start as soon as there is a place"
        notes.forgivable(f"{path}.schedulingGates", message, hint="suspend the job until it may start")
    for problem in program.unreadable:
        notes.forgivable(f"{path}.containers[0].resources", f"Invalid value: {problem}", hint=_IGNORED)
    for note in program.notes:
        notes.warn(path, note)
