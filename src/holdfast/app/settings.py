"""The settings: flags override the environment, which overrides defaults. Only ``app`` reads the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path  # noqa: TC003 - pydantic reads the annotation at run time
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, InstanceOf, IPvAnyNetwork, SecretStr

from holdfast.app.reach import ServerReach, read, span
from holdfast.dialects.native.offers import read_offer
from holdfast.dialects.native.thresholds import read_reclaim, read_thresholds
from holdfast.domain.placement.pressure import Threshold
from holdfast.domain.shortage import Shortage
from holdfast.domain.terms.resources import Amounts  # noqa: TC001 - pydantic reads the annotation at run time
from holdfast.domain.units import parse_duration, parse_memory

DEFAULT_PORT = 7070
_LAST_PORT = 65535


def _age(value: object) -> float | None:
    return None if value is None else parse_duration(value)


def _end(value: object) -> float | None:
    return None if value in {None, "never"} else parse_duration(value)


def _offer(value: object) -> Amounts:
    return read_offer(str(value))


def _thresholds(value: object) -> object:
    return read_thresholds(value) if isinstance(value, str) else value


def _reclaim(value: object) -> object:
    return read_reclaim(value) if isinstance(value, str) else value


def _size(value: object) -> int:
    return parse_memory(value)


def _pairs(value: object) -> object:
    if not isinstance(value, str):
        return value
    pairs = [part.strip().rpartition("=") for part in value.split(",") if part.strip()]
    if not all(name and account for name, _, account in pairs):
        msg = "Input should be NAME=ACCOUNT, separated by commas"
        raise ValueError(msg)
    return {name: account for name, _, account in pairs}


def _address(value: object) -> object:
    if not isinstance(value, str):
        return value
    host, colon, port = value.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > _LAST_PORT:
        msg = "Input should be ADDRESS:PORT"
        raise ValueError(msg)
    return host.removeprefix("[").removesuffix("]"), int(port)


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


_Thresholds = Annotated[tuple[InstanceOf[Threshold], ...], BeforeValidator(_thresholds)]
_Reclaim = Annotated[Mapping[Shortage, int], BeforeValidator(_reclaim)]


class Settings(ServerReach):
    """Settings of one Holdfast process; ``read_settings`` takes each from ``HOLDFAST_<NAME>``."""

    run_as: Literal["self", "submitter"] = "self"
    """Whose account programs run as: ``self``, the server's, or ``submitter``, their submitter's, which takes root."""
    accounts: Annotated[Mapping[str, str], BeforeValidator(_pairs)] = Field(default_factory=dict)
    """The Unix accounts of submitters that have none by their own name: ``NAME=ACCOUNT,...``"""
    listen: Annotated[tuple[str, int] | None, BeforeValidator(_address)] = None
    """Where ``up`` listens, e.g. ``0.0.0.0:8443``; unset: ``127.0.0.1:7070``."""
    tls_cert: Path | None = None
    """The server's certificate with its chain, as PEM; a renewed one is used without a restart."""
    tls_key: Path | None = None
    """The key of that certificate."""
    proxy: Annotated[tuple[IPvAnyNetwork, ...], BeforeValidator(_listed)] = ()
    """Addresses of the TLS proxy in front of a server without TLS; requests from other machines are then refused."""
    oidc_issuer: str | None = None
    """The OpenID Connect issuer whose tokens are accepted, as they name it: ``https://HOST/PATH``; unset: none."""
    oidc_audience: str | None = None
    """The audience (``aud``) of the issuer's tokens for this server; required with an issuer."""
    oidc_user_claim: str = "sub"
    """The claim of a token that names its bearer, such as ``sub``, ``email`` or ``preferred_username``."""
    oidc_groups_claim: str = "groups"
    """The claim with the bearer's groups; of a nested claim, its path: ``realm_access.roles``."""
    oidc_prefix: str = "oidc:"
    """The prefix that the names of the issuer's people and groups get."""
    hosts: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Names by which others reach the server, besides IP addresses and the machine's own name."""
    database: SecretStr | None = None
    """Where jobs are kept: ``postgresql://USER:PASSWORD@HOST/NAME``, ``sqlite:///FILE``; unset: the data directory."""
    lease: Annotated[float, BeforeValidator(span)] = Field(default="60s", ge=5.0, validate_default=True)
    """On PostgreSQL: how long a silent server keeps others out; it stops its programs after 2/3 of that."""
    retention: Annotated[float | None, BeforeValidator(_age)] = None
    """How long a server keeps jobs that have ended, with their logs, e.g. ``30d``; unset: forever."""
    audit_retention: Annotated[float | None, BeforeValidator(_age)] = Field(default="365d", validate_default=True)
    """How long a server keeps the entries of the audit log, e.g. ``90d``; empty: forever."""
    nodes: int = Field(default=1, ge=1, le=64)
    """How many nodes the local executor divides this machine into; more than one lets anti-affinity act."""
    cpus: float | None = Field(default=None, gt=0)
    """CPUs the local executor offers; unset: all of them."""
    memory: str | None = None
    """Memory the local executor offers, e.g. ``8Gi``; unset: all of it."""
    gpus: int | None = Field(default=None, ge=0, le=1024)
    """GPUs the local executor hands out; unset: all that are found; if more than found: that many, by number."""
    devices: Path | None = None
    """A file that declares the GPUs instead: ``devices: [{id: GPU-..., type: A100, memory: 40Gi}]``."""
    avoid_busy_devices: bool = True
    """Whether to avoid GPUs in use by programs that Holdfast did not start; NVIDIA only."""
    device_look: Annotated[float, BeforeValidator(span)] = Field(default="10s", ge=0.05, validate_default=True)
    """How often GPUs are checked for other programs and for failures."""
    resources: Annotated[Amounts, BeforeValidator(_offer)] = ()
    """Named resources of each local node, e.g. ``licence/matlab=2,scratch=100Gi``; ``pods`` is 110 if unset."""
    evict_below: _Thresholds = ()
    """Below what programs are evicted, e.g. ``memory=5%,disk=2Gi``; ``memory=10%:2m``: after 2 min; unset: never."""
    evict_reclaim: _Reclaim = Field(default_factory=dict)
    """How much more must be free before such a threshold counts as met again: ``memory=500Mi,disk=1Gi``."""
    unschedulable_after: Annotated[float | None, BeforeValidator(_age)] = None
    """How long a job that no node could ever hold waits before it fails, e.g. ``1h``; unset: forever."""
    log_limit: Annotated[int, BeforeValidator(_size)] = Field(default="256Mi", validate_default=True)
    """Disk space for the log of one run, e.g. ``1Gi``; of a longer log the newest half of that is kept; 0: no limit."""
    pids_limit: int = Field(default=0, ge=0)
    """Processes and threads one run may have at once, if control groups can count them; 0: no limit."""
    pod_backoff: Annotated[float, BeforeValidator(span)] = Field(default="10s", validate_default=True)
    """How long a Kubernetes Job waits before it replaces its first failed pod; doubles with each further failure."""
    pod_backoff_max: Annotated[float, BeforeValidator(span)] = Field(default="10m", validate_default=True)
    """The longest such wait; programs restarted in their pod (``restartPolicy: OnFailure``) wait 5m at most."""
    connections: int = Field(default=1000, ge=1)
    """Connections to the API at a time; fewer if the server may not open that many files (``ulimit -n``)."""
    streams: int = Field(default=100, ge=0)
    """Clients that may follow events at a time; one person may have half of those left; 0: none."""
    doors: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Other systems' protocols that the server speaks, for their clients: ``armada``, ``backendai``, ``fluster``."""
    armada_listen: str = "127.0.0.1:50051"
    """Where Armada's clients connect by gRPC; other machines need TLS; port 0: any free one, see ``server.json``."""
    armada_config: Path | None = None
    """A file of Armada's with `scheduling.retryPolicy` and `application.errorCategories`; read again if changed."""
    fluster_listen: str = "127.0.0.1:50052"
    """Where Fluster's clients on this machine connect by gRPC; port 0: any free one, see ``server.json``."""
    fluster_replay: Annotated[float, BeforeValidator(span)] = Field(default="60s", ge=0, validate_default=True)
    """How long a launch that Fluster's clients send again gets the answer of the first."""
    fluster_python: Path | None = None
    """The Python that runs calls of Fluster's clients; it needs cloudpickle. Unset: the server's own."""
    fluster_index: str = ""
    """The index of their packages: a URL, or a folder to use no network; unset: as the installer is configured."""
    fluster_installer: Literal["uv", "pip"] | None = None
    """What installs them, ``uv`` or ``pip``; unset: uv if there is one, unless only pip has an index configured."""
    fluster_prepare_timeout: Annotated[float, BeforeValidator(span)] = Field(default="10m", gt=0, validate_default=True)
    """How long the installation may take before the launch fails."""
    backendai_owner: str | None = None
    """The user to whom the keypair in ``backendai.env`` belongs; unset: the server's own account."""
    door_anonymous: str | None = None
    """The user to whom calls from this machine without a token belong at the doors; unset: they are refused."""
    door_unschedulable_after: Annotated[float | None, BeforeValidator(_end)] = 10.0
    """How long such a job waits if it came in by a door, whose system ends it at once; ``never``: forever."""
    door_watches: int = Field(default=1000, ge=1)
    """Clients of a door that may follow events at a time; their streams never end."""
    door_watches_each: int | None = Field(default=None, ge=1)
    """How many of those one caller may have; unset: an admin all, others half of what others have not taken."""
    request_timeout: Annotated[float, BeforeValidator(span)] = Field(default="30s", gt=0, validate_default=True)
    """How long a client can take to send a request, including its body; a slower one is disconnected."""
    notify_allow: Annotated[tuple[IPvAnyNetwork, ...], BeforeValidator(_listed)] = ()
    """Non-public addresses that webhooks and e-mail may go to, such as ``127.0.0.0/8,10.1.2.3``."""
    notify_commands: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Programs that notifiers may run, as absolute paths separated by commas."""
    secrets: Path | None = None
    """The folder with secrets of notifiers and jobs, one file each; unset: ``secrets`` in the data directory."""
    log_level: str = "warning"
    """Level of the structured log on stderr: debug, info, warning, error."""


def read_settings(**values: Any) -> Settings:  # noqa: ANN401 - of each setting's own type
    """Read the settings; ``values`` override the environment.

    Raises:
        InvalidSetting: With every wrong setting, by the name of its variable.
    """
    return read(Settings, values)
