"""What clients ask about what operators write, and about users; conditions on other fields are refused."""

from enum import StrEnum

from pydantic import Field

from holdfast.api.backendai.models.conditions import (
    MOST_VALUES,
    ChoiceCondition,
    OrderDirection,
    TextCondition,
    UuidCondition,
)
from holdfast.api.backendai.models.parts import Paging, RequestModel

_MOST_KEYS = 10


class ProjectType(StrEnum):
    """What a project is for; all are general."""

    GENERAL = "general"
    MODEL_STORE = "model-store"
    PERSONAL = "personal"


class ProjectFilterRequest(RequestModel):
    """Which projects to list."""

    id: UuidCondition | None = None
    name: TextCondition | None = None
    domain_name: TextCondition | None = None
    type: ChoiceCondition[ProjectType] | None = None
    is_active: bool | None = None
    all_of: list["ProjectFilterRequest"] | None = Field(default=None, alias="AND", max_length=MOST_VALUES)
    any_of: list["ProjectFilterRequest"] | None = Field(default=None, alias="OR", max_length=MOST_VALUES)
    none_of: list["ProjectFilterRequest"] | None = Field(default=None, alias="NOT", max_length=MOST_VALUES)


class DomainFilterRequest(RequestModel):
    """Which domains to list."""

    id: UuidCondition | None = None
    name: TextCondition | None = None
    description: TextCondition | None = None
    is_active: bool | None = None
    all_of: list["DomainFilterRequest"] | None = Field(default=None, alias="AND", max_length=MOST_VALUES)
    any_of: list["DomainFilterRequest"] | None = Field(default=None, alias="OR", max_length=MOST_VALUES)
    none_of: list["DomainFilterRequest"] | None = Field(default=None, alias="NOT", max_length=MOST_VALUES)


class GroupFilterRequest(RequestModel):
    """Which resource groups to list."""

    name: TextCondition | None = None
    description: TextCondition | None = None
    is_active: bool | None = None
    is_public: bool | None = None
    is_default: bool | None = None
    all_of: list["GroupFilterRequest"] | None = Field(default=None, alias="AND", max_length=MOST_VALUES)
    any_of: list["GroupFilterRequest"] | None = Field(default=None, alias="OR", max_length=MOST_VALUES)
    none_of: list["GroupFilterRequest"] | None = Field(default=None, alias="NOT", max_length=MOST_VALUES)


class ImageStatusWord(StrEnum):
    """Whether an image can be used; all can."""

    ALIVE = "ALIVE"
    DELETED = "DELETED"


class ImageFilterRequest(RequestModel):
    """Which images to list."""

    id: UuidCondition | None = None
    name: TextCondition | None = None
    architecture: TextCondition | None = None
    status: ChoiceCondition[ImageStatusWord] | None = None
    is_local: bool | None = None
    all_of: list["ImageFilterRequest"] | None = Field(default=None, alias="AND", max_length=MOST_VALUES)
    any_of: list["ImageFilterRequest"] | None = Field(default=None, alias="OR", max_length=MOST_VALUES)
    none_of: list["ImageFilterRequest"] | None = Field(default=None, alias="NOT", max_length=MOST_VALUES)


class UserFilterRequest(RequestModel):
    """Which users to list."""

    uuid: UuidCondition | None = None
    username: TextCondition | None = None
    email: TextCondition | None = None
    domain_name: TextCondition | None = None
    all_of: list["UserFilterRequest"] | None = Field(default=None, alias="AND", max_length=MOST_VALUES)
    any_of: list["UserFilterRequest"] | None = Field(default=None, alias="OR", max_length=MOST_VALUES)
    none_of: list["UserFilterRequest"] | None = Field(default=None, alias="NOT", max_length=MOST_VALUES)


class KeypairFilterRequest(RequestModel):
    """Which keypairs to list."""

    is_active: bool | None = None
    is_admin: bool | None = None
    is_default: bool | None = None
    access_key: TextCondition | None = None
    resource_policy: TextCondition | None = None
    user_id: UuidCondition | None = None
    all_of: list["KeypairFilterRequest"] | None = Field(default=None, alias="AND", max_length=MOST_VALUES)
    any_of: list["KeypairFilterRequest"] | None = Field(default=None, alias="OR", max_length=MOST_VALUES)
    none_of: list["KeypairFilterRequest"] | None = Field(default=None, alias="NOT", max_length=MOST_VALUES)


class EntryOrderField(StrEnum):
    """What entries are ordered by; a kind that does not have the field is listed by name."""

    ID = "id"
    NAME = "name"
    USERNAME = "username"
    EMAIL = "email"
    DOMAIN_NAME = "domain_name"
    IS_ACTIVE = "is_active"
    CREATED_AT = "created_at"
    MODIFIED_AT = "modified_at"
    ACCESS_KEY = "access_key"
    IS_ADMIN = "is_admin"
    IS_DEFAULT = "is_default"
    LAST_USED = "last_used"
    RESOURCE_POLICY = "resource_policy"


class EntryOrder(RequestModel):
    """One key of an order of entries."""

    field: EntryOrderField
    direction: OrderDirection = OrderDirection.ASC


class SearchEntriesRequest(Paging):
    """A search among entries."""

    order: list[EntryOrder] | None = Field(default=None, max_length=_MOST_KEYS)


class SearchProjectsRequest(SearchEntriesRequest):
    """A search among projects."""

    filter: ProjectFilterRequest | None = None


class SearchDomainsRequest(SearchEntriesRequest):
    """A search among domains."""

    filter: DomainFilterRequest | None = None


class SearchGroupsRequest(SearchEntriesRequest):
    """A search among resource groups."""

    filter: GroupFilterRequest | None = None


class SearchImagesRequest(SearchEntriesRequest):
    """A search among images."""

    filter: ImageFilterRequest | None = None


class SearchKeypairsRequest(SearchEntriesRequest):
    """A search among keypairs."""

    filter: KeypairFilterRequest | None = None


class SearchUsersRequest(SearchEntriesRequest):
    """A search among users."""

    filter: UserFilterRequest | None = None
