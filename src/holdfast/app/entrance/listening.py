"""The sockets of a server: of its address, the Unix socket by which its own machine finds it, and the port of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app.entrance import network, of_jobs, unix_socket
from holdfast.client.unix import address_of
from holdfast.domain.record import Struct
from holdfast.errors import Unavailable

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from contextlib import ExitStack

    import uvicorn

    from holdfast.app.data.datadir import DataDir
    from holdfast.app.settings import Settings


class Listening(Struct, frozen=True):
    """Where callers come in."""

    sockets: list[socket.socket]
    url: str
    """For people."""
    own_url: str
    """For commands on the data directory: they need not know by which name the certificate calls the server."""
    jobs_url: str
    """For programs of jobs: they need not trust a certificate, whatever the account that they run as."""
    publish: Callable[[], None]
    """Has a Unix socket be found, once all is ready."""
    for_jobs: socket.socket | None = None
    """The one of the sockets that is for them alone, if there is one."""


def listening(stack: ExitStack, config: uvicorn.Config, settings: Settings, directory: DataDir) -> Listening:
    """Listen; the stack closes what is not handed to a server.

    Raises:
        Unavailable: Something is taken.
        Refused: Something else is in the place of the Unix socket.
    """
    bound, host = _bound(config), config.host
    is_beyond, is_secure = network.is_beyond(host), settings.tls_cert is not None
    scheme = "https" if is_secure else "http"
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}"
    path = settings.socket or (directory.path / "holdfast.sock" if is_beyond or is_secure else None)
    if path is None:
        return Listening([bound], url, url, url, lambda: None)
    everybody = settings.run_as == "submitter" and settings.socket is not None
    local = stack.enter_context(unix_socket.listening(path, everybody=everybody))
    sockets = [bound, local.listener]
    if not (is_beyond or is_secure):
        return Listening(sockets, url, url, url, local.publish)
    for_jobs = stack.enter_context(of_jobs.listening(directory))
    jobs_url = f"http://{of_jobs.HOST}:{for_jobs.getsockname()[1]}"
    return Listening([*sockets, for_jobs], url, address_of(path), jobs_url, local.publish, for_jobs)


def _bound(config: uvicorn.Config) -> socket.socket:
    try:
        bound = config.bind_socket()
    except SystemExit as error:
        msg = f"port {config.port} on {config.host} is taken"
        raise Unavailable(msg, hint="choose another with --port, or 0 for any free one") from error
    bound.listen(config.backlog)  # from when the address can be found, whoever comes waits instead of being refused
    return bound
