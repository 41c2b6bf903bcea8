"""Wire models for operators besides entries: settings, nodes, devices and API tokens."""

from typing import Any

from pydantic import Field

from holdfast.wire.base import Body, Response, Timestamp
from holdfast.wire.jobs import ResourcesView
from holdfast.wire.problems import ProblemEntry


class SettingsView(Response):
    """The operator's settings; they are sent back as they are read, so fields have the names of manifests."""

    global_max_retries: int | None = Field(default=None, alias="globalMaxRetries")
    """The most retries granted to one job; 0 stops all retries, null means no limit."""
    default_backoff: dict[str, Any] = Field(alias="defaultBackoff")
    default_policy_name: str | None = Field(default=None, alias="defaultPolicyName")
    """The policy of jobs for which neither the queue nor the job names one."""
    handler_limits: dict[str, Any] = Field(default_factory=dict, alias="handlerLimits")
    """Limits of the lifecycle's handlers, by name, where they differ from their table."""
    resources: dict[str, int | float] = Field(default_factory=dict)
    """Named resources of the whole cluster."""
    retry_share: float = Field(default=0.5, alias="retryShare")
    """The most capacity for retries while new jobs of the same queue and priority wait; 0 to 1."""
    builtin_policy: str = Field(default="all", alias="builtinPolicy")
    """How much of the built-in policy applies to jobs: all, lost-only or none; jobs of other systems' APIs follow
    those."""
    fluster: dict[str, Any] = Field(default_factory=dict)
    """Retry defaults for jobs of Fluster's API that specify none."""
    session_retry_default: dict[str, Any] = Field(default_factory=dict, alias="sessionRetryDefault")
    """The fields that are set of every session's retry policy; its queue and its domain can replace them."""
    session_retries: bool = Field(default=True, alias="sessionRetries")
    """Whether failed sessions are retried; sessions that are enqueued already keep what held for them."""
    access: dict[str, list[str]] = Field(default_factory=dict)
    """People and groups by role, as ``user:NAME`` and ``group:NAME``."""
    others_see: str = Field(default="details", alias="othersSee")
    """What people see of others' jobs: nothing, existence, details or everything."""
    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious, such as a role for a group that the machine does not have."""


class ConfigurationView(Response):
    """The content of the configuration file in force."""

    file: str
    changed: bool
    """Whether its content changed."""
    enabled: bool | None = None
    """Whether retry policies apply to jobs of its API; null if the file does not say."""
    global_max_retries: int | None = None
    default_policy_name: str | None = None
    categories: list[str] = Field(default_factory=list)
    """Its failure categories, in order."""
    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious, such as a default policy that does not exist."""


class NodeView(Response):
    """A node with its capacity, as last reported."""

    name: str
    executor: str
    capacity: ResourcesView
    used: ResourcesView
    """What runs use that are not confirmed stopped."""
    runs: int
    labels: dict[str, str] = Field(default_factory=dict)
    seen_at: Timestamp
    engine: str = ""
    """The engine: ``process`` for local processes."""
    capabilities: list[str] = Field(default_factory=list)
    """The engine's capabilities beyond running one program in a place that the controller chose."""
    state: str = "Ready"
    """``Ready``; ``Short``: it lacks something that programs need to start, and gets no new work until that is over;
    ``Cordoned``: it gets no new work; ``Draining``: its runs are being stopped; or ``Drained``.
    """
    reason: str = ""
    """Why it is not ready: its shortage, since when and how that showed, or the reason of its cordon."""


class DeviceUser(Response):
    """A run that has a device or a share of it."""

    job: str
    """The job's id."""
    name: str
    """The job's name."""
    uid: str
    """The run's uid."""
    share: float = 1.0


class DeviceView(Response):
    """One GPU of a node, as last reported."""

    id: str
    node: str
    executor: str
    index: int
    type: str = ""
    """The model's name."""
    memory: str = "0"
    """Bytes with a unit; ``0`` if unknown."""
    maker: str = ""
    state: str
    """Free, Shared (with room for another share), InUse, Foreign (used by other programs), Unhealthy or Cordoned."""
    reason: str = ""
    """Why it is not assigned to anybody, if so."""
    cordoned_at: Timestamp | None = None
    used: float
    """The part of it that runs have."""
    runs: list[DeviceUser] = Field(default_factory=list)


class NodePage(Response):
    """All nodes, by executor and name."""

    items: list[NodeView]


class DevicePage(Response):
    """All GPUs, by executor and node, in the order of the bus."""

    items: list[DeviceView]


class VersionView(Response):
    """The server's version."""

    version: str
    api: str = "v1"
    revision: int
    """The API's revision."""


class MeView(Response):
    """The caller, as the server knows them."""

    name: str
    """The name under which they submit."""
    groups: list[str] = Field(default_factory=list)
    via: str
    """How they authenticated: ``in-process`` (by the data directory), ``socket``, ``token`` or ``oidc``."""


class Health(Response):
    """Whether the server works."""

    status: str
    """``ok`` or ``unavailable``."""
    detail: str = ""


class TokenBody(Body):
    """A request for a token."""

    name: str = Field(max_length=255)
    user: str | None = Field(default=None, max_length=255)
    """The user that the token stands for; by default the caller."""
    role: str | None = None
    """The most that it may do; by default as much as its user."""
    scopes: list[str] = Field(default_factory=list)
    """What it is for, each as ``verbs@kind``, or for work in one place as ``verbs@job:queue=NAME`` or
    ``verbs@job:group=GROUP``; by default everything.
    """
    expires_s: float | None = None
    """Seconds until it expires; by default it does not."""


class TokenView(Response):
    """A token without its text."""

    name: str
    user: str
    role: str
    scopes: list[str] = Field(default_factory=list)
    state: str
    """Valid, Expired or Revoked."""
    created_at: Timestamp
    created_by: str = ""
    expires_at: Timestamp | None = None
    used_on: str = ""
    """The day of its last use."""


class TokenMade(TokenView):
    """A new token with its text, which is shown only this once."""

    token: str


class TokenPage(Response):
    """Tokens, by name."""

    items: list[TokenView]
