"""``holdfast.BackendAi`` and ``holdfast.AsyncBackendAi``: sessions with retries, by Backend.AI's door.

with BackendAi() as backend:
    session = backend.enqueue("python train.py", retry_policy={"max_retries": 2})
    print(backend.get(session.id).retry_state.attempt)
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

import anyio
from anyio.to_thread import run_sync

from holdfast.app.data.backendai import find_door
from holdfast.client.backendai.calls import BackendAiCalls
from holdfast.client.backendai.requests import session_request
from holdfast.sdk.asynchronous import in_thread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack
    from uuid import UUID

    from holdfast.client.backendai.requests import SessionOptions
    from holdfast.client.backendai.views import BackendAiAttempt, BackendAiSession, BackendAiStep, EndedSessions


class BackendAi:
    """A client of Backend.AI's door; threads may share it, and no call is sent twice.

    ``calls`` are those that it makes, with requests in Backend.AI's fields.
    """

    def __init__(
        self, endpoint: str | None = None, access_key: str | None = None, secret_key: str | None = None
    ) -> None:
        """Find the door by the arguments, ``BACKEND_*``, or ``backendai.env`` in the data directory.

        Args:
            endpoint: Such as ``http://127.0.0.1:7070``.
            access_key: Of the keypair to sign with.
            secret_key: Likewise.

        Raises:
            HoldfastError: The door cannot be found.
        """
        self.calls = BackendAiCalls(find_door(endpoint, access_key, secret_key), time.time)

    def __enter__(self) -> Self:
        """Use it in a ``with`` statement."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; to close it twice is fine."""
        self.calls.close()

    def enqueue(self, command: Sequence[str] | str | None, **options: Unpack[SessionOptions]) -> BackendAiSession:
        """Create a session.

        Args:
            command: A line for the shell, or a program with its arguments; ``None`` for an interactive session.
            **options: How to run it.

        Raises:
            HoldfastError: It was refused.
        """
        return self.calls.send_request(session_request(command, options)).session

    def get(self, session_id: UUID | str) -> BackendAiSession:
        """Read a session.

        Raises:
            NotFound: There is no such session.
        """
        return self.calls.get(str(session_id))

    def attempts(self, session_id: UUID | str) -> list[BackendAiAttempt]:
        """List the sessions of a chain, oldest first, by any of them."""
        return self.calls.attempts(str(session_id))

    def search(
        self,
        statuses: Sequence[str] = (),
        *,
        name: str | None = None,
        project: str | None = None,
        limit: int | None = None,
    ) -> list[BackendAiSession]:
        """List sessions in any of these statuses, or all, the newest first; ``name`` is a part of their names."""
        return list(self.calls.search(statuses=statuses, name=name, project=project, limit=limit))

    def terminate(self, session_ids: Sequence[UUID | str], *, forced: bool = False) -> EndedSessions:
        """End sessions, and with each what waits to retry it."""
        return self.calls.terminate([*map(str, session_ids)], forced=forced)

    def logs(self, session_id: UUID | str, kernel_id: UUID | str | None = None) -> str:
        """Read the output of a kernel, by default of the main one."""
        return self.calls.logs(str(session_id), None if kernel_id is None else str(kernel_id))

    def history(self, session_id: UUID | str, *, kernels: bool = False) -> list[BackendAiStep]:
        """List the steps of a session, or of its kernels, oldest first."""
        return list(self.calls.history(str(session_id), kernels=kernels))


class AsyncBackendAi:
    """The same for an event loop; each call is made in a thread by ``client``."""

    enqueue = in_thread("client", BackendAi.enqueue)
    get = in_thread("client", BackendAi.get)
    attempts = in_thread("client", BackendAi.attempts)
    search = in_thread("client", BackendAi.search)
    terminate = in_thread("client", BackendAi.terminate)
    logs = in_thread("client", BackendAi.logs)
    history = in_thread("client", BackendAi.history)

    def __init__(
        self, endpoint: str | None = None, access_key: str | None = None, secret_key: str | None = None
    ) -> None:
        """Find the door as ``BackendAi`` does."""
        self.client = BackendAi(endpoint, access_key, secret_key)

    async def __aenter__(self) -> Self:
        """Use it in an ``async with`` statement."""
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; to close it twice is fine."""
        with anyio.CancelScope(shield=True):
            await run_sync(self.client.close)
