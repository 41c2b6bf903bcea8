"""What clients are answered about what operators write, and about users.

What Holdfast does not have has the value that upstream gives it when nobody sets it.
"""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from holdfast.api.backendai.models.parts import AnswerModel, moment

_UNKNOWN_TIME = moment(0.0)
"""When entries were created, which is not kept."""


class ProjectBasics(AnswerModel):
    """What a project is called."""

    name: str
    description: str | None = None
    type: str = "general"
    integration_name: str | None = None


class ProjectOrganization(AnswerModel):
    """Where a project belongs."""

    domain_name: str
    resource_policy: str = "default"


class ProjectStorage(AnswerModel):
    """The storage of a project: none."""

    allowed_vfolder_hosts: list[str] = Field(default_factory=list)


class ProjectLifecycle(AnswerModel):
    """Whether a project accepts sessions."""

    is_active: bool
    created_at: datetime | None = None
    modified_at: datetime | None = None


class ProjectView(AnswerModel):
    """A project, which is a queue."""

    id: UUID
    entity_id: UUID
    basic_info: ProjectBasics
    organization: ProjectOrganization
    storage: ProjectStorage = ProjectStorage()
    lifecycle: ProjectLifecycle


class DomainBasics(AnswerModel):
    """What a domain is called."""

    name: str
    description: str | None
    integration_name: str | None = None


class DomainRegistry(AnswerModel):
    """Where images may come from: everywhere."""

    allowed_docker_registries: list[str] = Field(default_factory=list)


class DomainLifecycle(AnswerModel):
    """Whether a domain accepts sessions."""

    is_active: bool
    is_default: bool
    created_at: datetime = _UNKNOWN_TIME
    modified_at: datetime = _UNKNOWN_TIME


class DomainNode(AnswerModel):
    """A domain."""

    id: UUID
    entity_id: UUID
    basic_info: DomainBasics
    registry: DomainRegistry = DomainRegistry()
    lifecycle: DomainLifecycle


class UserBasics(AnswerModel):
    """What a user is called."""

    username: str
    email: str
    full_name: str | None = None
    description: str | None = None
    integration_name: str | None = None


class UserStatus(AnswerModel):
    """Whether a user may come in."""

    status: Literal["active"] = "active"
    status_info: str | None = None
    need_password_change: bool = False


class UserOrganization(AnswerModel):
    """Where a user belongs."""

    domain_name: str
    role: str
    resource_policy: str = "default"
    main_access_key: str | None = None


class UserSecurity(AnswerModel):
    """How a user is protected."""

    allowed_client_ip: list[str] | None = None
    totp_activated: bool = False
    totp_activated_at: datetime | None = None
    sudo_session_enabled: bool = False


class UserContainer(AnswerModel):
    """The account in containers, of which there are none."""

    container_uid: int | None = None
    container_main_gid: int | None = None
    container_gids: list[int] | None = None


class UserTimes(AnswerModel):
    """When a user was created, which is not kept."""

    created_at: datetime | None = None
    modified_at: datetime | None = None


class UserView(AnswerModel):
    """A user."""

    id: UUID
    entity_id: UUID
    basic_info: UserBasics
    status: UserStatus = UserStatus()
    organization: UserOrganization
    security: UserSecurity = UserSecurity()
    container: UserContainer = UserContainer()
    timestamps: UserTimes = UserTimes()


class UserAnswer(AnswerModel):
    """A user."""

    user: UserView


class ResourceGroupStatus(AnswerModel):
    """Whether a resource group accepts sessions."""

    is_active: bool
    is_public: bool = True
    is_default: bool


class GroupMetadata(AnswerModel):
    """What a resource group is for."""

    description: str | None
    created_at: datetime = _UNKNOWN_TIME


class GroupNetwork(AnswerModel):
    """The network of a resource group, which is that of its machines."""

    wsproxy_addr: str | None = None
    use_host_network: bool = True


class GroupPreemption(AnswerModel):
    """How a resource group makes room: not for other sessions of the same user."""

    enabled: bool = False
    preemptible_priority: int = 0
    order: str = "oldest"
    mode: str = "reschedule"
    preemption_min_runtime: float = 0.0


class GroupScheduler(AnswerModel):
    """In which order a resource group starts sessions."""

    type: str = "fair-share"
    preemption: GroupPreemption = GroupPreemption()


class HandlerLimitsView(AnswerModel):
    """The limits of a handler: none of its own."""

    timeout_sec: int | None = None
    max_retry_count: int | None = None


class HandlerOptionsView(AnswerModel):
    """The limits of handlers."""

    default: HandlerLimitsView = HandlerLimitsView()
    by_handler: list[HandlerLimitsView] = Field(default_factory=list)


class DeploymentDefaults(AnswerModel):
    """The defaults of deployments, of which there are none."""

    handler_options: HandlerOptionsView = HandlerOptionsView()


class SessionDefaults(AnswerModel):
    """The defaults of sessions."""

    priority: int = 10
    is_preemptible: bool = True
    cluster_mode: Literal["single-node"] = "single-node"
    default_failure_policy: Literal["strict"] = "strict"
    default_kernel_execution_spec: None = None
    handler_options: HandlerOptionsView = HandlerOptionsView()
    agent_selection_policy: Literal["strict"] = "strict"


class ResourceGroupView(AnswerModel):
    """A resource group."""

    id: UUID
    entity_id: UUID
    name: str
    status: ResourceGroupStatus
    metadata: GroupMetadata
    network: GroupNetwork = GroupNetwork()
    scheduler: GroupScheduler = GroupScheduler()
    default_deployment_options: DeploymentDefaults = DeploymentDefaults()
    default_session_options: SessionDefaults = SessionDefaults()


class ImageLabel(AnswerModel):
    """A label of an image."""

    key: str
    value: str


class ImageView(AnswerModel):
    """An image."""

    id: UUID
    entity_id: UUID
    name: str
    image: str
    registry: str
    registry_id: UUID
    project: str | None = None
    tag: str | None
    architecture: str
    size_bytes: int = 0
    type: Literal["compute"] = "compute"
    status: Literal["ALIVE"] = "ALIVE"
    labels: list[ImageLabel]
    tags: list[ImageLabel] = Field(default_factory=list)
    resource_limits: list[ImageLabel] = Field(default_factory=list)
    accelerators: str | None = None
    config_digest: str = ""
    is_local: bool = True
    created_at: datetime | None = None
    last_used_at: datetime | None = None


class NamesAnswer(AnswerModel):
    """Names of what is allowed."""

    items: list[str]
