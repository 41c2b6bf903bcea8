"""``holdfast.Client``: submits commands and functions, and finds jobs again."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast, overload

from holdfast.app.connect import connect
from holdfast.app.data.datadir import DataDir
from holdfast.app.settings import read_settings
from holdfast.client import Client as Api
from holdfast.client.connection import Connection
from holdfast.client.forking import after_fork
from holdfast.errors import InvalidRequest, Problem
from holdfast.sdk.array import Array, array_manifest
from holdfast.sdk.calls.folder import ANNOTATION, MAX_BYTES, CallFolder
from holdfast.sdk.job import Job
from holdfast.sdk.manifest import Manifest, Options, manifest_of, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Unpack

    from holdfast.client.transport import HttpResponse
    from holdfast.sdk.array import ArrayOptions
    from holdfast.sdk.calls.folder import Call
    from holdfast.sdk.states import State

P = ParamSpec("P")
T = TypeVar("T")
SomeOptions = TypeVar("SomeOptions", bound="Options")
_CALLS = "calls"
_MOST_AT_ONCE = 1000


class _Shared(Connection):
    """Sends by another connection, one request at a time; streams have connections of their own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._renew_lock()
        after_fork(self, _Shared._renew_lock)
        self.address, self.streams, self.pause = connection.address, connection.streams, connection.pause
        self.patience_s = connection.patience_s

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

    def send(self, method: str, path: str, *, repeatable: bool | None = None, **request: Any) -> HttpResponse:
        with self._lock:
            return self._connection.send(method, path, repeatable=repeatable, **request)

    def lines(self, path: str, *, params: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[str]:
        return self._connection.lines(path, params=params, headers=headers)

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class Client:
    """A client of a Holdfast; threads may share it.

    ``api`` has every call of the REST API, typed.
    """

    def __init__(
        self,
        url: str = "",
        token: str | None = None,
        *,
        api: Api | None = None,
        directory: str | Path | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """Remember where the server is; nothing is sent yet. ``from_env`` finds it by itself.

        Args:
            url: Such as ``http://127.0.0.1:7070``, or ``unix:///run/holdfast/holdfast.sock``, which needs no token.
            token: The server's token.
            api: A client of the REST API to use instead; closed with this client.
            directory: The directory for functions and results; default ``calls`` in the data directory.
            max_bytes: The largest size of a function with its arguments, or of a result.
        """
        self.api = Api(connection=_Shared((api or Api(url, token)).connection))
        self._directory = None if directory is None else Path(directory)
        self._max_bytes = max_bytes
        self._calls: CallFolder | None = None
        self._stack = ExitStack()
        self._stack.callback(self.api.close)
        self._closing = weakref.finalize(self, self._stack.close)

    @classmethod
    def from_env(cls, *, drive: bool = True, directory: str | Path | None = None, max_bytes: int = MAX_BYTES) -> Self:
        """Find a Holdfast as the command line does: ``HOLDFAST_URL``, ``HOLDFAST_SOCKET``, or the data directory.

        Args:
            drive: If no server runs, also run the jobs of the data directory in this process until it is closed.
            directory: As of the class.
            max_bytes: As of the class.
        """
        stack = ExitStack()
        try:
            api = stack.enter_context(connect(drive=drive, settings=read_settings()))
            client = cls(api=api, directory=directory, max_bytes=max_bytes)
        except BaseException:
            stack.close()
            raise
        client._stack.push(stack)
        return client

    def __enter__(self) -> Self:
        """Use it in a ``with`` statement."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; jobs continue if a server runs. To close it twice is fine."""
        self._closing()

    @overload
    def submit(
        self,
        work: Callable[..., T],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Job[T]: ...
    @overload
    def submit(self, work: Sequence[str] | str | Mapping[str, Any], **options: Unpack[Options]) -> Job[None]: ...
    def submit(
        self,
        work: Callable[..., Any] | Sequence[str] | str | Mapping[str, Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Job[Any]:
        """Submit a program with its arguments, a line for the shell, a manifest, or a function to be called.

        Args:
            work: What to run.
            args: The arguments of a function.
            kwargs: The keyword arguments of a function.
            **options: How to run it.

        Raises:
            HoldfastError: It was refused.
            TypeError: The function or an argument cannot be pickled.
        """
        if callable(work):
            [job] = self._call([(work, args, kwargs or {})], options)
            return job
        if not isinstance(work, str | bytes) and hasattr(work, "keys"):
            if options:
                msg = "a manifest takes no options; write them into the manifest"
                raise InvalidRequest(msg)
            manifest = dict(work)
        else:
            manifest = manifest_of(work, self._with_secrets(options))
        accepted = self.api.submit(manifest)
        return Job(self.api, accepted.id, accepted.name)

    def map(self, function: Callable[..., T], *iterables: Iterable[Any], **options: Unpack[Options]) -> list[Job[T]]:
        """Submit a call for each item, or for the items at the same place of several iterables; all or none.

        Raises:
            HoldfastError: They were refused.
            TypeError: The function or an item cannot be pickled.
        """
        return self._call([(function, items, {}) for items in zip(*iterables, strict=False)], options)

    def submit_array(self, work: Sequence[str] | str, **options: Unpack[ArrayOptions]) -> Array:
        """Submit many tasks of one program as an array; ``map`` does so with a function.

        Args:
            work: A program with its arguments, or a line for the shell; ``{index}``, ``{line}`` and the names of the
                matrix in braces stand for the values of the task.
            **options: Which tasks there are, and how to run each.

        Raises:
            HoldfastError: It was refused.
        """
        accepted = self.api.submit_array(array_manifest(work, self._with_secrets(options)))
        return Array(self.api, accepted.id, accepted.name)

    def array(self, reference: str) -> Array:
        """Find an array by its name or its id.

        Raises:
            NotFound: There is no such array.
        """
        view = self.api.array(reference)
        return Array(self.api, view.id, view.name)

    def job(self, reference: str) -> Job[Any]:
        """Find a job by its id, its name or the beginning of its id; the job of a call has its result.

        Raises:
            NotFound: There is no such job.
        """
        view = self.api.job(reference)
        name = view.annotations.get(ANNOTATION)
        return Job(self.api, view.id, view.name, None if name is None else self.calls.of(name))

    def jobs(
        self,
        states: Iterable[State] = (),
        *,
        queue: str | None = None,
        user: str | None = None,
        group: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Job[Any]]:
        """List jobs in any of these states, or all, in order of submission; ``user`` is the submitter."""
        for view in self.api.full_jobs(states=states, queue=queue, user=user, group=group, limit=limit):
            name = view.annotations.get(ANNOTATION)
            yield Job(self.api, view.id, view.name, None if name is None else self.calls.of(name))

    @property
    def calls(self) -> CallFolder:
        """The directory for functions and results, created on first use."""
        if self._calls is None:
            self._calls = CallFolder(self._directory or self._usual_place(), self._max_bytes)
            self._calls.forget(self.api.states)
        return self._calls

    def _usual_place(self) -> Path:
        """Choose a directory in the data directory; a server of another one gets a directory of its own."""
        data, address = read_settings().data, self.api.connection.address
        server = DataDir(data).server()
        if not address or (server is not None and server.url == address):
            return data / _CALLS
        return data / f"{_CALLS}-{sha256(address.encode()).hexdigest()[:8]}"

    def _call(
        self, calls: Sequence[tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]], options: Options
    ) -> list[Job[Any]]:
        added: list[Call] = []
        options = self._with_secrets(options)
        try:
            manifests = []
            for function, arguments, named in calls:
                added.append(self.calls.add(function, arguments, named))
                manifests.append(call_manifest(added[-1], name_of(function), options))
            ids = self._submitted(manifests)
        except BaseException:
            for call in added:
                call.delete()
            raise
        for call, job_id in zip(added, ids, strict=True):
            call.note_job(job_id)
        return [
            Job(self.api, job_id, manifest["metadata"]["name"], call)
            for job_id, manifest, call in zip(ids, manifests, added, strict=True)
        ]

    def _with_secrets(self, options: SomeOptions) -> SomeOptions:
        """Send the values of secret variables to the server, and refer to them in the job's ``env``."""
        fields = cast("Options", options)
        secrets = fields.get("secret_env", ())
        if not secrets:
            return options
        values = secrets if isinstance(secrets, Mapping) else {name: os.environ.get(name, "") for name in secrets}
        if empty := [name for name, value in values.items() if not value]:
            raise InvalidRequest(problems=[Problem(f"secret_env[{name}]", "is not set here") for name in empty])
        references: dict[str, Any] = {name: {"secret": self.api.keep_secret(value)} for name, value in values.items()}
        rest = {name: value for name, value in fields.items() if name != "secret_env"}
        return cast("SomeOptions", {**rest, "env": {**fields.get("env", {}), **references}})

    def _submitted(self, manifests: Sequence[Manifest]) -> list[str]:
        if len(manifests) == 1:
            return [self.api.submit(manifests[0]).id]
        ids: list[str] = []
        for start in range(0, len(manifests), _MOST_AT_ONCE):
            items = self.api.submit_bulk(manifests[start : start + _MOST_AT_ONCE]).items
            ids += [item.id for item in items if item.id is not None]
        return ids


def call_manifest(call: Call, name: str, options: Options) -> Manifest:
    """Build the manifest of a job that is a call."""
    fields: Options = {"name": name, **options}
    fields["annotations"] = {**options.get("annotations", {}), **call.annotations}
    return manifest_of(call.command, fields)
