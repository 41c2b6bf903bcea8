"""Passes parts of the caller's shell to programs: an active virtual environment stays active, and files are found."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from holdfast.cli.manifests import in_spec
from holdfast.cli.nouns import Noun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.flags import Flags
    from holdfast.cli.manifests import Manifest

USUAL = ("PATH", "VIRTUAL_ENV", "CONDA_*", "LD_LIBRARY_PATH", "PYTHONPATH")
"""Variables that decide which program is found, and what it loads."""
ALL, NONE = "ALL", "NONE"
_OF_THE_SHELL = frozenset({"_", "OLDPWD", "PWD", "SHLVL"})
_OURS = "HOLDFAST_"
"""The prefix of variables that name a server and its token, which no program gets."""


def exported(chosen: str | None, cli: Cli, flags: Flags) -> dict[str, str]:
    """Return the variables to set for a program, and warn of those that are left out because they are not UTF-8.

    Args:
        chosen: ``ALL``, ``NONE``, or names and patterns separated by commas; ``None`` is the usual ones.
        cli: Has the caller's environment.
        flags: Collects problems.
    """
    from holdfast.client.connection import is_utf_8

    variables = {name: value for name, value in cli.environ.items() if not name.startswith(_OURS)}
    if chosen == NONE:
        return {}
    if chosen == ALL:
        selected = {name: value for name, value in variables.items() if name not in _OF_THE_SHELL}
    else:
        patterns = USUAL if chosen is None else flags.names([chosen])
        for pattern in patterns:
            if chosen is not None and "*" not in pattern and pattern not in variables:
                hint = f"{ALL}, {NONE}, or names and patterns separated by commas, such as PATH,CUDA_*"
                flags.wrong("--export", f"{pattern!r} is not set here", hint=hint)
            elif chosen is not None and not is_utf_8(variables.get(pattern, "")):
                flags.wrong("--export", f"the value of {pattern!r} is not UTF-8 text")
        selected = {
            name: value for name, value in variables.items() if any(fnmatchcase(name, glob) for glob in patterns)
        }
    exported = {name: value for name, value in selected.items() if is_utf_8(name + value)}
    if len(exported) < len(selected):
        left_out = ", ".join(sorted(selected.keys() - exported.keys()))
        cli.say(f"warning: these variables are not UTF-8 text and are not exported: {left_out}")
    return exported


def carrying(manifests: Sequence[Manifest], env: Mapping[str, str], cli: Cli) -> list[Manifest]:
    """Give jobs and arrays a shell's variables and directory, unless they set their own, and say so on a terminal.

    Manifests of Kubernetes and job sets are left as they are: their programs are meant for images and other machines.

    Args:
        manifests: Manifests of any kind.
        env: Variables of the shell.
        cli: Has the shell's working directory.
    """
    cwd = cli.cwd()
    carried = [_carrying(manifest, env, cwd) if is_own_job(manifest) else manifest for manifest in manifests]
    if cli.stderr.isatty() and any(new is not old for new, old in zip(carried, manifests, strict=True)):
        names = ", ".join(sorted(env)) or "no variable"
        cli.say(
            f"from this shell, unless a job sets its own: {names}; working directory {cwd} (turn off: --export NONE)"
        )
    return carried


def is_own_job(manifest: Manifest) -> bool:
    """Whether it is a job or an array in Holdfast's own form."""
    return manifest.noun == Noun.JOB and manifest.document.value.get("apiVersion") != "batch/v1"


def _carrying(manifest: Manifest, env: Mapping[str, str], cwd: str) -> Manifest:
    own = manifest.spec.get("env")
    additions: dict[str, object] = {} if _has_a_folder(manifest.spec) else {"workingDir": cwd}
    if own is None or isinstance(own, Mapping):
        additions["env"] = {**env, **(own or {})}
    return in_spec(manifest, additions)


def _has_a_folder(spec: Mapping[str, object]) -> bool:
    """Whether its runs use a folder that it names, or need a folder of their own."""
    return spec.get("workingDir") is not None or bool(spec.get("inputs")) or spec.get("keepWorkDirectory") is False
