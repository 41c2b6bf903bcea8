"""What operators see and set beside the entries that they write: settings, nodes, devices and API tokens."""

from typing import Any

from pydantic import Field

from holdfast.wire.base import Body, Response, Timestamp
from holdfast.wire.jobs import ResourcesView
from holdfast.wire.problems import ProblemEntry


class SettingsView(Response):
    """What the operator sets for everyone; it is sent back as it is read, so its fields are named as in manifests."""

    global_max_retries: int | None = Field(default=None, alias="globalMaxRetries")
    """Cap on retries granted to one job; 0 is the kill switch, null is no cap."""
    default_backoff: dict[str, Any] = Field(alias="defaultBackoff")
    default_policy_name: str | None = Field(default=None, alias="defaultPolicyName")
    """Applies when neither the queue nor the job names a policy."""
    handler_limits: dict[str, Any] = Field(default_factory=dict, alias="handlerLimits")
    """How patient the lifecycle's handlers are, by name, where that differs from their table."""
    resources: dict[str, int | float] = Field(default_factory=dict)
    """What the whole cluster has of what is counted by a name."""
    retry_share: float = Field(default=0.5, alias="retryShare")
    """Most of the capacity that goes to retries while new jobs of their queue and priority wait; 0 to 1."""
    builtin_policy: str = Field(default="all", alias="builtinPolicy")
    """How much of the built-in policy applies to jobs: all, lost-only or none; a door's follow its system."""
    fluster: dict[str, Any] = Field(default_factory=dict)
    """What jobs of Fluster's door have that say nothing of retries themselves."""
    access: dict[str, list[str]] = Field(default_factory=dict)
    """Who has which role: by role, people and groups as ``user:NAME`` and ``group:NAME``."""
    others_see: str = Field(default="details", alias="othersSee")
    """What people see of others' jobs: nothing, existence, details or everything."""
    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious, such as a role of a group that the machine has not."""


class ConfigurationView(Response):
    """What a configuration file says, which is in force."""

    file: str
    changed: bool
    """Whether it said something else before."""
    enabled: bool | None = None
    """Whether retry policies apply to the jobs of its door; null where it says nothing of retries."""
    global_max_retries: int | None = None
    default_policy_name: str | None = None
    categories: list[str] = Field(default_factory=list)
    """Names of its failure categories, in their order."""
    warnings: list[ProblemEntry] = Field(default_factory=list)
    """What is legal but dubious: a default policy that does not exist."""


class NodeView(Response):
    """A place with capacity, as last reported."""

    name: str
    executor: str
    capacity: ResourcesView
    used: ResourcesView
    """By runs that are not confirmed stopped."""
    runs: int
    labels: dict[str, str] = Field(default_factory=dict)
    seen_at: Timestamp
    engine: str = ""
    """What runs things there: ``process`` for local processes."""
    capabilities: list[str] = Field(default_factory=list)
    """What that can do beyond running one program in a place the controller chose."""
    state: str = "Ready"
    """``Ready``, ``Short``: it lacks what starting a program takes, and gets nothing new until that is over,
    ``Cordoned``: it gets nothing new, ``Draining``: what runs there is stopped, or ``Drained``."""
    reason: str = ""
    """Why it is not ready: what it is short of, since when and how that showed, or what whoever cordoned it said."""


class DeviceUser(Response):
    """A run that has a device, or a share of it."""

    job: str
    """The job's id."""
    name: str
    """The job's name."""
    uid: str
    """The run's."""
    share: float = 1.0


class DeviceView(Response):
    """One GPU of a node, as last reported."""

    id: str
    node: str
    executor: str
    index: int
    type: str = ""
    """The name of its model."""
    memory: str = "0"
    """Bytes with a unit; ``0`` where it is not known."""
    maker: str = ""
    state: str
    """Free, Shared (there is room for another share), InUse, Foreign (other programs use it), Unhealthy or Cordoned."""
    reason: str = ""
    """Why it is given to nobody, if so."""
    cordoned_at: Timestamp | None = None
    used: float
    """How much of it runs have."""
    runs: list[DeviceUser] = Field(default_factory=list)


class NodePage(Response):
    """All nodes, by executor and name."""

    items: list[NodeView]


class DevicePage(Response):
    """All GPUs, by executor and node and in the order of the bus."""

    items: list[DeviceView]


class VersionView(Response):
    """What answers here."""

    version: str
    api: str = "v1"
    revision: int
    """Of the API."""


class MeView(Response):
    """Who asks, as the server knows them."""

    name: str
    """What they submit is submitted by this name."""
    groups: list[str] = Field(default_factory=list)
    via: str
    """How they came in: ``in-process``, by the data directory alone; ``socket``; ``token``; ``oidc``, an issuer's."""


class Health(Response):
    """Whether the server can work."""

    status: str
    """``ok`` or ``unavailable``."""
    detail: str = ""


class TokenBody(Body):
    """A token that is asked for."""

    name: str = Field(max_length=255)
    user: str | None = Field(default=None, max_length=255)
    """Who is taken for calling when it is shown; by default who asks."""
    role: str | None = None
    """At most this; by default as much as its user may."""
    scopes: list[str] = Field(default_factory=list)
    """What it is for, each as ``verbs@kind``, or of work in one place as ``verbs@job:queue=NAME`` or
    ``verbs@job:group=GROUP``; by default everything."""
    expires_s: float | None = None
    """In how many seconds it expires; by default never."""


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
    """The day on which it was last used."""


class TokenMade(TokenView):
    """A new token, with its text, which is shown this once."""

    token: str


class TokenPage(Response):
    """Tokens, by name."""

    items: list[TokenView]
