"""What can be set from outside: flags over environment over default. Nothing below ``app`` reads the environment."""

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
    """Who programs run as: ``self``, the server's own account, or ``submitter``, theirs; for that it must be root's."""
    accounts: Annotated[Mapping[str, str], BeforeValidator(_pairs)] = Field(default_factory=dict)
    """The Unix accounts of submitters that have none by their own name: ``NAME=ACCOUNT,...``"""
    listen: Annotated[tuple[str, int] | None, BeforeValidator(_address)] = None
    """Where ``up`` listens, e.g. ``0.0.0.0:8443``; unset: ``127.0.0.1:7070``."""
    tls_cert: Path | None = None
    """The certificate it shows, with those that vouch for it, as PEM; a renewed one is taken up without a restart."""
    tls_key: Path | None = None
    """The key of that certificate."""
    proxy: Annotated[tuple[IPvAnyNetwork, ...], BeforeValidator(_listed)] = ()
    """Addresses of the TLS proxy in front of a server without TLS; it then takes requests from no other machine."""
    oidc_issuer: str | None = None
    """The OpenID Connect issuer whose tokens are taken, as its tokens name it: ``https://HOST/PATH``; unset: none."""
    oidc_audience: str | None = None
    """What the issuer calls this server in the tokens for it (``aud``); required with an issuer."""
    oidc_user_claim: str = "sub"
    """The claim of a token that names its bearer, such as ``sub``, ``email`` or ``preferred_username``."""
    oidc_groups_claim: str = "groups"
    """The claim with the bearer's groups; of one that is inside others, the path: ``realm_access.roles``."""
    oidc_prefix: str = "oidc:"
    """What the names of the issuer's people and groups begin with here."""
    hosts: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Names that others call the server by, besides IP addresses and the machine's own name."""
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
    """Named resources of each local node, e.g. ``licence/matlab=2,scratch=100Gi``; of ``pods`` it has 110 if unset."""
    evict_below: _Thresholds = ()
    """Below what programs are evicted, e.g. ``memory=5%,disk=2Gi``; ``memory=10%:2m``: after 2 min; unset: never."""
    evict_reclaim: _Reclaim = Field(default_factory=dict)
    """How much more must be available before such a threshold counts as kept again: ``memory=500Mi,disk=1Gi``."""
    unschedulable_after: Annotated[float | None, BeforeValidator(_age)] = None
    """How long a job that no node could ever hold waits before it has failed, e.g. ``1h``; unset: forever."""
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
    """Clients that follow events at a time, of one person at most half of those left; 0: none."""
    doors: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Other systems' protocols that a server speaks: ``armada``, ``fluster``; their clients come in by them."""
    armada_listen: str = "127.0.0.1:50051"
    """Where Armada's clients come in over gRPC; others by TLS; port 0: any free one, see ``server.json``."""
    armada_config: Path | None = None
    """A file of Armada's with `scheduling.retryPolicy` and `application.errorCategories`; read again if changed."""
    fluster_listen: str = "127.0.0.1:50052"
    """Where Fluster's clients on this machine come in over gRPC; port 0: any free one, see ``server.json``."""
    fluster_replay: Annotated[float, BeforeValidator(span)] = Field(default="60s", ge=0, validate_default=True)
    """How long a launch by Fluster's clients that is sent again is answered as the first time."""
    fluster_python: Path | None = None
    """The Python that runs calls of Fluster's clients; it has cloudpickle. Unset: the one that runs the server."""
    fluster_index: str = ""
    """Where their packages come from: a URL, or a folder for no network; unset: where the installer is set to look."""
    fluster_installer: Literal["uv", "pip"] | None = None
    """What installs them, ``uv`` or ``pip``; unset: uv if the machine has it, unless pip alone is set where to look."""
    fluster_prepare_timeout: Annotated[float, BeforeValidator(span)] = Field(default="10m", gt=0, validate_default=True)
    """How long that may take before the launch has failed."""
    door_anonymous: str | None = None
    """Whose calls of a door are that show no token, from this machine; unset: nobody's, and they are refused."""
    door_unschedulable_after: Annotated[float | None, BeforeValidator(_end)] = 10.0
    """How long one that came in by a door does, whose system ends such jobs at once; ``never``: forever."""
    door_watches: int = Field(default=1000, ge=1)
    """Clients of a door that follow events at a time; theirs never end."""
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
    """Read the settings; what is given counts more than the environment.

    Raises:
        InvalidSetting: With every setting that is wrong, by the name of its variable.
    """
    return read(Settings, values)
