"""Finds the door and calls it, as ``armadactl`` does: by its flags, its configuration file, or our own server here."""

from __future__ import annotations

import base64
import ipaddress
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from holdfast.api.armada._generated import status
from holdfast.api.armada._generated.pool import PROTOCOL
from holdfast.api.armada.refusals import DETAILS
from holdfast.cli.armada.failure import Failed, Told
from holdfast.cli.armada.files import read_file
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from google.protobuf.message import Message

    from holdfast.app.whereabouts import DoorPlace

DEFAULT_ADDRESS = "localhost:50051"
CONFIG = ".armadactl.yaml"
LARGEST_MESSAGE = 16 * 1024 * 1024
_WITHIN_S = 30.0
_GO_NAMES = {"CANCELLED": "Canceled"}


class Config(Struct, frozen=True):
    """The configuration file of ``armadactl``."""

    path: Path
    contexts: Mapping[str, Mapping[str, Any]]
    """By their names; names of settings are in lower case, as Viper takes them."""
    current: str = ""
    alone: Mapping[str, Any] = {}
    """What stands there beside contexts."""


def read_config(given: str) -> Config:
    """Read the configuration file: one that is named, or that of the home directory, which need not be there.

    Raises:
        Failed: It cannot be read.
    """
    path = Path(given) if given else Path(CONFIG)
    with suppress(RuntimeError):  # somebody without a home
        path = Path(given) if given else Path.home() / CONFIG
    if not path.is_file():
        if given:
            told = f"could not find config file {given}"
            raise Failed(told)
        return Config(path, {})
    documents = read_file(str(path), "error reading config file {}: {}")
    value = _lowered(documents[0].value) if documents else {}
    contexts = value.pop("contexts", None) or {}
    if not isinstance(contexts, dict):
        told = f"error reading config file {path}: contexts must be a mapping"
        raise Failed(told)
    return Config(path, contexts, str(value.pop("currentcontext", None) or ""), value)


def _lowered(value: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key).lower(): _lowered(one) if isinstance(one, dict) else one for key, one in value.items()}


def chosen(config: Config, context: str) -> Mapping[str, Any]:
    """Return how to connect, in the context that is wanted or the current one.

    Raises:
        Failed: There is none of that name.
    """
    name = context or config.current
    if not name:
        return config.alone
    found = config.contexts.get(name.lower())
    if not isinstance(found, dict):
        told = f"context {name} not found under contexts within the Armada config"
        raise Failed(told)
    return found


class DoorConnection:
    """A way to the door."""

    def __init__(self, place: DoorPlace, details: Mapping[str, Any]) -> None:
        """Connect when something is called for.

        Args:
            place: Where it is.
            details: Of the context: ``basicauth``, and whether to do without TLS.
        """
        self.address = place.address
        beyond = not _is_here(place.address)
        secure = place.secure or (beyond and details.get("forcenotls") is not True)
        options = [("grpc.max_receive_message_length", LARGEST_MESSAGE), ("grpc.enable_retries", 0)]
        if secure:
            shown = grpc.ssl_channel_credentials(place.roots)
            self._channel = grpc.secure_channel(place.address, shown, options=options)
        else:
            self._channel = grpc.insecure_channel(place.address, options=options)
        basic = details.get("basicauth")
        authorization = None
        if isinstance(basic, dict) and basic.get("username"):
            pair = f"{basic['username']}:{basic.get('password') or ''}"
            authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif place.token and not (beyond and not secure):  # ours is never sent in clear to another machine
            authorization = f"Bearer {place.token}"
        self._metadata = () if authorization is None else (("authorization", authorization),)

    def call(self, service: str, method: str, sent: Message) -> Told:
        """Call a method that gives one answer.

        Raises:
            Failed: It was refused, or nobody answered.
        """
        reads = self._reads(service, method)
        made = self._channel.unary_unary(f"/{service}/{method}", _bytes_of, reads)
        try:
            return made(sent, metadata=self._metadata, timeout=_WITHIN_S)
        except grpc.RpcError as error:
            raise self.failed(error) from error

    def stream(self, service: str, method: str, sent: Message) -> Iterator[Told]:
        """Call a method that gives many answers; errors are gRPC's own."""
        made = self._channel.unary_stream(f"/{service}/{method}", _bytes_of, self._reads(service, method))
        yield from made(sent, metadata=self._metadata)

    @staticmethod
    def _reads(service: str, method: str) -> Callable[[bytes], Told]:
        answer = PROTOCOL.service(service).FindMethodByName(method).output_type
        return PROTOCOL.message(answer.full_name).FromString

    def failed(self, error: grpc.RpcError) -> Failed:
        """Return a refusal as Go prints it, with all that its details say is wrong."""
        code, told = error.code(), error.details() or ""
        name = _GO_NAMES.get(code.name) or "".join(part.capitalize() for part in code.name.split("_"))
        more = list(_violations(error, told))
        if code is grpc.StatusCode.UNAVAILABLE:
            more.append(f"  nothing answers at {self.address}; to open the door here: holdfast up --door armada")
        return Failed(f"rpc error: code = {name} desc = {told}", *more)

    def close(self) -> None:
        """Disconnect."""
        self._channel.close()


def _bytes_of(message: Message) -> bytes:
    return message.SerializeToString()


def _is_here(address: str) -> bool:
    host = address.removeprefix("dns:").lstrip("/").rpartition(":")[0].removeprefix("[").removesuffix("]")
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _violations(error: grpc.RpcError, told: str) -> Iterator[str]:
    """Say what is wrong with which field, but for what the sentence has said already."""
    sent = next((one.value for one in error.trailing_metadata() or () if one.key == DETAILS), None)
    if sent is None:
        return
    for part in status.Status.FromString(bytes(sent)).details:
        request = status.BadRequest()
        if not part.Unpack(request):
            continue
        listed = list(request.field_violations)
        alone = len(listed) == 1 and listed[0].description == told
        for one in () if alone else listed:
            yield f"  {one.field}: {one.description}" if one.field else f"  {one.description}"
