"""The parts of a launch: the call, its retries, its environment and its workspace."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.api.fluster._generated import cluster
from holdfast.sdk.calls.folder import pickled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_SKIPPED = frozenset({".git", ".venv", "__pycache__", "node_modules"})
_ALWAYS = (1980, 1, 1, 0, 0, 0)
"""The time of all files in an archive, so that an unchanged workspace gives the same archive."""
_MS = 1000
_NO_REPOSITORY = b"not a git repository (or any"


@dataclass
class RetryConfig:
    """Job retry configuration."""

    max_retries_failure: int = 0
    """Most retries for job failures; 0 is none."""
    max_retries_preemption: int = 100
    """Most retries for worker failures."""
    initial_delay: float = 1.0
    """Initial delay between retries, in seconds."""
    max_delay: float = 60.0
    """Longest delay of the exponential back-off."""
    backoff_multiplier: float = 2.0
    retry_on_exit_codes: list[int] = field(default_factory=list)
    """Only retry on these exit codes; empty is any but 0."""
    no_retry_on_exit_codes: list[int] = field(default_factory=list)
    """Never retry on these exit codes."""

    def message(self) -> cluster.RetryConfig:
        """Return the message to send."""
        return cluster.RetryConfig(
            max_retries_failure=self.max_retries_failure,
            max_retries_preemption=self.max_retries_preemption,
            initial_retry_delay_ms=round(self.initial_delay * _MS),
            max_retry_delay_ms=round(self.max_delay * _MS),
            backoff_multiplier=self.backoff_multiplier,
            retry_on_exit_codes=self.retry_on_exit_codes,
            no_retry_on_exit_codes=self.no_retry_on_exit_codes,
        )


@dataclass(frozen=True)
class Entrypoint:
    """A call that is made in the job's process."""

    callable: Callable[..., object]
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def from_callable(cls, function: Callable[..., object], *args: object, **kwargs: object) -> Entrypoint:
        """Return the call of a function with these arguments."""
        return cls(function, args, kwargs)

    def serialized(self) -> bytes:
        """Return the bytes to send.

        Raises:
            TypeError: The call cannot be pickled.
        """
        # Readers ignore what follows a pickle: here, the Python that wrote it.
        return pickled(self.callable, self.args, self.kwargs) + "#python={}.{}".format(*sys.version_info).encode()


def create_environment(
    workspace: str | None = None,
    pip_packages: Sequence[str] = (),
    env_vars: Mapping[str, str] | None = None,
    extras: Sequence[str] = (),
) -> cluster.EnvironmentConfig:
    """Return an environment with these packages, extras of the workspace, and variables."""
    environment = cluster.EnvironmentConfig(pip_packages=pip_packages, env_vars=dict(env_vars or {}), extras=extras)
    if workspace is not None:
        environment.workspace = workspace
    return environment


def packed(workspace: Path) -> bytes:
    """Pack a workspace: the files that git tracks or does not ignore, or all files outside a repository.

    Links are left out.

    Raises:
        NotADirectoryError: It is not a directory.
        RuntimeError: It is a repository, and git does not say what it ignores there.
    """
    if not workspace.is_dir():
        raise NotADirectoryError(workspace)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(_names(workspace)):
            path = workspace / name
            if path.is_file() and not path.is_symlink():
                info = zipfile.ZipInfo(name, _ALWAYS)
                info.external_attr, info.compress_type = path.stat().st_mode << 16, zipfile.ZIP_DEFLATED
                archive.writestr(info, path.read_bytes())
    return data.getvalue()


def _names(workspace: Path) -> Iterator[str]:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - the caller's own git
            cwd=workspace,
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        listed = None
    if listed is not None and listed.returncode == 0:
        yield from dict.fromkeys(name for name in os.fsdecode(listed.stdout).split("\0") if name)
        return
    if (workspace / ".git").exists() or (listed is not None and _NO_REPOSITORY not in listed.stderr):
        why = "git is not installed" if listed is None else os.fsdecode(listed.stderr).strip()
        msg = f"git does not say which files of {workspace} it ignores, so that they cannot be left out: {why}"
        raise RuntimeError(msg)
    for folder, below, names in os.walk(workspace):
        below[:] = [name for name in below if name not in _SKIPPED]
        yield from (Path(folder, name).relative_to(workspace).as_posix() for name in names)
