"""Notes the parts of a manifest that no engine here supports, and refuses a manifest that cannot run without them.

Most programs can do without images and volumes. A set that names only images would fail with every pod: without a
command there is nothing to start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dialects.jobset.program import COUNTED
from holdfast.dialects.native.resources import OFFERED
from holdfast.domain.containers import Capability, ContainerRole
from holdfast.domain.suggestion import closest
from holdfast.domain.workloads.jobset.model import CONTROLLER, JobSetSpec
from holdfast.domain.workloads.kubejob.reconcile import CONTROLLER as JOB_CONTROLLER
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.dialects.jobset.program import ReadProgram
    from holdfast.dialects.jobset.reading import KubeManifest
    from holdfast.dialects.jobset.wording import ManifestNotes
    from holdfast.domain.containers import EngineInfo
    from holdfast.domain.workloads.kubejob.program import Program

TEMPLATE = "template.spec.template.spec"
"""The path from a replicated job to its pod, in upstream's form."""
_IGNORED = "as it is, it is ignored"
_HINT = "write the program out: command: [PROGRAM, ARGUMENT...]"


def check_runnable(manifest: KubeManifest, notes: ManifestNotes) -> None:
    """Note the unsupported parts of a manifest.

    Args:
        manifest: A job set or Job that was read.
        notes: Where to add problems and warnings; contains the manifest's programs.
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


def _check_managed(manager: str | None, ours: str, notes: ManifestNotes, path: str = "spec") -> None:
    if manager not in {None, ours}:
        notes.warn(f"{path}.managedBy", f"is managed by {manager}, so Holdfast does not run it")


def _check_pod(read: ReadProgram, notes: ManifestNotes, path: str) -> None:
    program = read.program
    engine = program.closest(notes.engines())
    for lacking in (*_lacking(read, engine), *_unknown(read, engine, lenient=notes.lenient)):
        notes.forgivable(_at(path, lacking.path), lacking.message, allowed=lacking.allowed, hint=lacking.hint)
    if read.gated:
        message = "Forbidden: nothing removes gates here; pods start as soon as there is room"
        notes.forgivable(f"{path}.schedulingGates", message, hint="suspend the job until it may start")
    for container, problem in read.unreadable:
        notes.forgivable(_at(path, f"{container}.resources"), f"Invalid value: {problem}", hint=_IGNORED)
    for note in (*_without(program, engine), *read.notes):
        notes.warn(path, note)


def _at(path: str, part: str) -> str:
    """Return the path of a part of a pod; in the short form the fields of its only container are the job's."""
    return f"{path}.{part if path.endswith('.spec') else part.removeprefix('containers[0].')}"


def _lacking(read: ReadProgram, engine: EngineInfo) -> Iterator[Problem]:
    """Say what a pod needs that an engine lacks, at paths within the pod."""
    program = read.program
    lacking = program.needs - engine.capabilities
    for where, container in program.placed():
        if container.role is ContainerRole.INIT and Capability.INIT_CONTAINERS in lacking:
            message = f"Forbidden: engine {engine.name} runs no init containers"
            yield Problem(where, message, hint="do its work at the beginning of the main container's command")
        elif container is not program and container.role is not ContainerRole.INIT and Capability.CONTAINERS in lacking:
            message = f"Forbidden: engine {engine.name} runs one container for each pod"
            yield Problem(where, message, (program.container,), "start it from the main container's command")
        elif container.is_arguments and Capability.IMAGES in lacking:
            why = f"engine {engine.name} runs programs, not images, so it does not know the image's own command"
            yield Problem(f"{where}.command", f"Required value: {why}", hint=_HINT)


def _unknown(read: ReadProgram, engine: EngineInfo, *, lenient: bool) -> Iterator[Problem]:
    """Return the named resources of a pod that nobody has."""
    resource_names = (*COUNTED, *sorted(engine.offers))
    for where, name in read.devices:
        if "/" in name and Capability.DEVICES in engine.capabilities:
            continue  # Only the engine knows what its nodes have.
        hint = _IGNORED if lenient else closest(name, engine.offers) or OFFERED
        message = f"Invalid value: {name}: engine {engine.name} offers no such resource"
        yield Problem(f"{where}.resources", message, resource_names, hint)


def _without(program: Program, engine: EngineInfo) -> Iterator[str]:
    """Return the parts of a pod that it can do without."""
    if program.image and Capability.IMAGES not in engine.capabilities:
        yield f"image {program.image} is ignored: the command runs as a local process"
    if Capability.VOLUMES in engine.capabilities:
        return
    for name in dict.fromkeys([*(item.name for item in program.volumes), *(item.volume for item in program.mounts)]):
        paths = ", ".join(item.path for item in program.mounts if item.volume == name)
        yield f"volume {name} is ignored" + (f": the program reads and writes the machine's own {paths}" * bool(paths))
