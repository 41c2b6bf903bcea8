"""The client's wait for a job of a case: the client is the one that users have, asked in place of a server's socket."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from holdfast.api.fluster._generated import cluster
from holdfast.dialects.fluster.status import FlusterState
from holdfast.fluster import RpcClusterClient

if TYPE_CHECKING:
    from collections.abc import Callable

SHORT_S = 0.02
"""How long it waits for what does not end."""


class _Client(RpcClusterClient):
    """Asks somebody else than a server."""

    asked: Callable[[], cluster.JobStatus]

    def status(self, job_id: str, *, include_result: bool = False) -> cluster.JobStatus:  # noqa: ARG002 - as it is called
        return self.asked()


@cache
def _client() -> _Client:
    """Return the client; making one takes longer than all that it does here."""
    return _Client("http://127.0.0.1:9")


def waited(asked: Callable[[], cluster.JobStatus], *, timeout_s: float = SHORT_S) -> str:
    """Wait for a job; returns the state in which it was found, or what was raised."""
    client = _client()
    client.asked = asked
    try:
        return FlusterState(client.wait("j1", timeout=timeout_s).state).name
    except TimeoutError as error:
        return type(error).__name__


def ends() -> list[str]:
    """List the states of which one is waited for no longer."""
    return [state.name for state in FlusterState if waited(partial(_in, state), timeout_s=0.0) == state.name]


def _in(state: FlusterState) -> cluster.JobStatus:
    return cluster.JobStatus(job_id="j1", state=f"JOB_STATE_{state.name}")
