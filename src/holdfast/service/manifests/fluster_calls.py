"""Takes in what a launch of Fluster's brings along to be run: its call, its workspace and the names of its packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.fluster.world import ENTRYPOINT, CallSettings, known_bundle, world_of
from holdfast.domain.record import Struct
from holdfast.domain.workloads.preparing import Input
from holdfast.errors import InvalidRequest, Problem
from holdfast.service.admission.inputs import kept, sent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.access import Principal
    from holdfast.ports.blobs import Blobs
    from holdfast.ports.calls import CallRunner

_CALL, _BUNDLE = "serialized_entrypoint", "bundle_blob"
_SCRIPT = b"#!"
_HINT = "HOLDFAST_FLUSTER_PYTHON names a Python that has cloudpickle and that the account of the job can run"


class Along(Struct, frozen=True):
    """What takes in what a launch brings along."""

    caller: Principal
    """Who launches."""
    blobs: Blobs | None
    """Where it is kept; ``None``: nowhere."""
    calls: CallRunner | None
    """What runs calls; ``None``: nothing."""

    def refusal(self) -> str | None:
        """Say why no call of theirs can be run, if so."""
        return "calls are not run here" if self.calls is None else self.calls.refusal(self.caller)


def _setup(calls: CallRunner) -> CallSettings:
    return CallSettings(tuple(calls.command), calls.index, calls.installer, calls.limit_s)


def program_of(request: Mapping[str, Any], along: Along, problems: list[Problem]) -> Mapping[str, Any]:
    """Return the fields of a job that say what it runs; nothing is kept of what is not valid.

    Args:
        request: The fields of a ``LaunchJobRequest`` that are set.
        along: What takes in what it brings along.
        problems: What is wrong with the launch so far; what is wrong here is added.
    """
    data: bytes = request.get(_CALL, b"")
    if not data:
        problems.append(Problem(_CALL, "is required"))
    script = data.startswith(_SCRIPT)
    packed = any(request.get("environment", {}).get(field) for field in ("pip_packages", "extras"))
    refusal = along.refusal() if packed or (data and not script) else None
    if refusal is not None:
        problems.append(Problem(_CALL, refusal, hint=_HINT))
    bundle = known_bundle(request, problems)
    setup = CallSettings() if along.calls is None else _setup(along.calls)
    runtime = world_of(request, setup, problems, has_bundle=bundle is not None or _BUNDLE in request)
    if problems:
        return {}
    try:
        if request.get(_BUNDLE):
            name = kept(request[_BUNDLE], along.blobs, along.caller, field=_BUNDLE, archive=True)
            bundle = Input(blob=name, unpack=True)
        call = sent(data, ENTRYPOINT, along.blobs, along.caller, field=_CALL)
    except InvalidRequest as error:
        problems += error.problems
        return {}
    return runtime.of(call, bundle, script=script)
