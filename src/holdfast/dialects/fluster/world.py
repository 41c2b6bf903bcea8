"""Reads how to run a Fluster job: its call, workspace and packages become a program with inputs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.job import port_variable
from holdfast.domain.record import Struct
from holdfast.domain.workloads.preparing import DEFAULT_TIMEOUT_S, Input, Preparation
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ENTRYPOINT = "entrypoint.pkl"
"""The file in the work directory that contains a call."""
BUNDLE_PATH = "FLUSTER_BUNDLE_GCS_PATH"
_RUN = """\
export FLUSTER_ATTEMPT_ID="$((HOLDFAST_ATTEMPT - 1))" FLUSTER_BIND_HOST=127.0.0.1 FLUSTER_WORKER_ID="$HOLDFAST_NODE"
if [ -n "$HOLDFAST_URL" ]; then export FLUSTER_CONTROLLER_ADDRESS="$HOLDFAST_URL"; fi
for port in "$@"; do eval "export FLUSTER_${port#HOLDFAST_}=\\"\\$$port\\""; done
chmod u+x "$0" && exec "./$0"
"""
"""Names that a script finds as a call does, whatever was sent under them; it also gets the variables of its ports."""
MOST_PACKAGES = 200
_PACKAGE = re.compile(r"[A-Za-z0-9][^\x00-\x1f\x7f]{0,499}")
_EXTRA = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_KEPT = re.compile(r"(?:file://.*/)?([0-9a-f]{64})")


class CallSettings(Struct, frozen=True):
    """The operator's settings for calls."""

    command: tuple[str, ...] = ()
    """The program that makes the call in a file, whose name follows."""
    index: str = ""
    """The index of packages: a URL or a folder; empty for the installer's own configuration."""
    installer: str = ""
    """The installer; empty for the one on the machine."""
    limit_s: float = DEFAULT_TIMEOUT_S
    """Seconds that the installation may take."""


def known_bundle(request: Mapping[str, Any], problems: list[Problem]) -> Input | None:
    """Return the stored bundle that a launch names by its hash or by a path that a job was told, if any."""
    for field in ("bundle_hash", "bundle_gcs_path"):
        if request.get(field):
            match = _KEPT.fullmatch(request[field])
            if match is not None:
                return Input(blob=match[1], unpack=True)
            hint = "send bundle_blob, or what a job finds in FLUSTER_BUNDLE_GCS_PATH"
            problems.append(Problem(field, "names nothing that is kept here", hint=hint))
    return None


class CallRuntime(Struct, frozen=True):
    """What a job needs besides its inputs."""

    command: tuple[str, ...]
    """The program that makes the call in a file."""
    prepare: Preparation | None = None
    ports: tuple[str, ...] = ()
    """The variables with the numbers of its ports."""

    def of(self, call: Input, bundle: Input | None, *, script: bool) -> dict[str, Any]:
        """Return which fields make a job run something that was sent: a call, or a script that begins with #!."""
        variables = {} if bundle is None else {BUNDLE_PATH: f"file:///bundles/{bundle.blob}"}
        return {
            "command": ("sh", "-c", _RUN, call.path, *self.ports) if script else (*self.command, call.path),
            "env": variables,
            "inputs": (call,) if bundle is None else (bundle, call),
            "prepare": self.prepare,
        }


def world_of(
    request: Mapping[str, Any], setup: CallSettings, problems: list[Problem], *, has_bundle: bool
) -> CallRuntime:
    """Read what a job needs.

    Args:
        request: The fields of a ``LaunchJobRequest`` that are set.
        setup: The operator's settings.
        problems: Where to add problems.
        has_bundle: Whether it has a workspace.
    """
    environment: Mapping[str, Any] = request.get("environment", {})
    packages = _packages(environment.get("pip_packages", ()), problems)
    extras = _extras(environment.get("extras", ()), problems)
    if extras and not has_bundle:
        problems.append(Problem("environment.extras", "are of a workspace, and none was sent", hint="send a bundle"))
    requirements = [*packages, *([f".[{','.join(extras)}]"] if extras else [])]
    index = ("--index", setup.index) if setup.index else ()
    installer = ("--by", setup.installer) if setup.installer else ()
    prepare = (
        Preparation((*setup.command, "--install", *installer, *index, *requirements), setup.limit_s)
        if requirements
        else None
    )
    ports = tuple(map(port_variable, request.get("ports", ())))
    return CallRuntime(setup.command, prepare, ports)


def _packages(named: Sequence[str], problems: list[Problem]) -> Sequence[str]:
    if len(named) > MOST_PACKAGES:
        text = f"has {len(named)} entries; at most {MOST_PACKAGES} are allowed"
        problems.append(Problem("environment.pip_packages", text))
    for place, package in enumerate(named[:MOST_PACKAGES]):
        if not _PACKAGE.fullmatch(package):
            hint = "a name, with a version if that matters: numpy==2.1"
            problems.append(Problem(f"environment.pip_packages[{place}]", f"{package[:80]!r} is no package", hint=hint))
    return named


def _extras(named: Sequence[str], problems: list[Problem]) -> Sequence[str]:
    for place, extra in enumerate(named):
        if not _EXTRA.fullmatch(extra):
            problems.append(Problem(f"environment.extras[{place}]", f"{extra[:80]!r} is not the name of an extra"))
    return named
