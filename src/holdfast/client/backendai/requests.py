"""Builds requests for sessions: from a command line, or from what a caller names."""

from __future__ import annotations

import secrets
import shlex
from typing import TYPE_CHECKING, Any, TypedDict

from holdfast.domain.sessions.model import named_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

_SIZE = 4
"""Random bytes in the name of a session that is given none."""
_UUID_LENGTH = 36
_DASHES = (8, 13, 18, 23)


class SessionOptions(TypedDict, total=False):
    """How to run a session."""

    name: str
    """Unique among the user's live sessions; default a random one."""
    image: str
    """Its name or id; default ``default``."""
    project: str
    """Its name or id; default ``default``."""
    cpu: float
    """CPUs of each kernel; default 1."""
    memory: int
    """Bytes of each kernel."""
    cluster_size: int
    """Its kernels."""
    environ: Mapping[str, str]
    retry_policy: Mapping[str, Any]
    """Some of the nine fields; the project, the domain and the cluster decide the others."""
    dependencies: Sequence[str]
    """The ids of sessions that must succeed before it starts."""
    starts_at: datetime
    timeout_s: int
    tag: str


def session_request(command: Sequence[str] | str | None, options: SessionOptions) -> dict[str, Any]:
    """Build the request for a session.

    Args:
        command: A line for the shell, or a program with its arguments; ``None`` for an interactive session, which
            holds its place until it is ended.
        options: How to run it.
    """
    entries = [{"resource_type": "cpu", "quantity": f"{options.get('cpu', 1):g}"}]
    if "memory" in options:
        entries.append({"resource_type": "mem", "quantity": str(options["memory"])})
    request: dict[str, Any] = {
        "session_name": options.get("name") or f"session-{secrets.token_hex(_SIZE)}",
        "session_type": "interactive" if command is None else "batch",
        "image_id": id_of("image", options.get("image", "default")),
        "project_id": id_of("project", options.get("project", "default")),
        "resource_entries": entries,
    }
    if command is not None:
        request["batch"] = _batch(command, options)
    size = options.get("cluster_size", 1)
    if size > 1:
        request |= {"cluster_size": size, "cluster_mode": "multi-node"}
    named = {name: options.get(name) for name in ("environ", "retry_policy", "dependencies", "tag")}
    return request | {name: value for name, value in named.items() if value}


def _batch(command: Sequence[str] | str, options: SessionOptions) -> dict[str, Any]:
    batch: dict[str, Any] = {"startup_command": command if isinstance(command, str) else shlex.join(command)}
    if "starts_at" in options:
        batch["starts_at"] = options["starts_at"].isoformat()
    if "timeout_s" in options:
        batch["batch_timeout"] = options["timeout_s"]
    return batch


def id_of(kind: str, reference: str) -> str:
    """Return the id of a project or an image, which may be named by its id."""
    is_id = len(reference) == _UUID_LENGTH and all(reference[place] == "-" for place in _DASHES)
    return reference if is_id else named_id(kind, reference)
