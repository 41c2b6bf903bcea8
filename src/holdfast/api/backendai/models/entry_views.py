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
