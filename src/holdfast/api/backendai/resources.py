"""Resource groups and images."""

from uuid import UUID

from holdfast.api.backendai.listing import list_rows
from holdfast.api.backendai.models.entries import SearchGroupsRequest, SearchImagesRequest
from holdfast.api.backendai.models.entry_views import (
    GroupMetadata,
    ImageLabel,
    ImageView,
    NamesAnswer,
    ResourceGroupStatus,
    ResourceGroupView,
)
from holdfast.api.backendai.models.parts import ListAnswer
from holdfast.api.backendai.routing import ROUTES, BackendAiCall
from holdfast.api.backendai.views import named_uuid
from holdfast.domain.terms.projects import DEFAULT_GROUP, Image, ResourceGroup
from holdfast.service.operations.catalogue import Images, ProjectDomains, Queues, ResourceGroups
from holdfast.service.sessions.directory import IMAGE, RESOURCE_GROUP, Directory

GROUPS, IMAGES = "/v2/resource-groups", "/v2/images"
_REGISTRY = "local"


@ROUTES.add("POST", f"{GROUPS}/search", "resource-group_search")
def search_groups(call: BackendAiCall, body: SearchGroupsRequest) -> ListAnswer[ResourceGroupView]:
    """Search among the resource groups."""
    fields = {
        "id": lambda group: named_uuid(RESOURCE_GROUP, group.name),
        "name": lambda group: group.name,
        "description": lambda group: group.description,
        "is_active": lambda group: group.active,
        "is_public": lambda _: True,
        "is_default": lambda group: group.name == DEFAULT_GROUP,
    }
    return list_rows(body, body.filter, ResourceGroups(call.backend.store).list(call.caller), fields, group_view)


@ROUTES.add("GET", f"{GROUPS}/{{group_name}}", "resource-group_read")
def read_group(call: BackendAiCall, group_name: str) -> ResourceGroupView:
    """Read a resource group."""
    return group_view(ResourceGroups(call.backend.store).get(call.caller, group_name))


@ROUTES.add("GET", f"{GROUPS}/domains/{{domain_name}}/allowed", "resource-group_read")
def groups_of_domain(call: BackendAiCall, domain_name: str) -> NamesAnswer:
    """List the resource groups that a domain may use, which are all."""
    ProjectDomains(call.backend.store).get(call.caller, domain_name)
    return _all_groups(call)


@ROUTES.add("GET", f"{GROUPS}/projects/{{project_id}}/allowed", "resource-group_read")
def groups_of_project(call: BackendAiCall, project_id: UUID) -> NamesAnswer:
    """List the resource groups that a project may use, which are all."""
    Queues(call.backend.store).list(call.caller)
    Directory(call.backend.store.catalogue()).project(str(project_id))
    return _all_groups(call)


@ROUTES.add("POST", f"{IMAGES}/search", "image_search")
def search_images(call: BackendAiCall, body: SearchImagesRequest) -> ListAnswer[ImageView]:
    """Search among the images."""
    fields = {
        "id": lambda image: named_uuid(IMAGE, image.name),
        "name": lambda image: image.reference,
        "architecture": lambda image: image.architecture,
        "status": lambda _: "ALIVE",
        "is_local": lambda _: True,
    }
    return list_rows(body, body.filter, Images(call.backend.store).list(call.caller), fields, image_view)


def _all_groups(call: BackendAiCall) -> NamesAnswer:
    return NamesAnswer(items=[group.name for group in ResourceGroups(call.backend.store).list(call.caller)])


def group_view(group: ResourceGroup) -> ResourceGroupView:
    """Describe a resource group."""
    id_ = named_uuid(RESOURCE_GROUP, group.name)
    return ResourceGroupView(
        id=id_,
        entity_id=id_,
        name=group.name,
        status=ResourceGroupStatus(is_active=group.active, is_default=group.name == DEFAULT_GROUP),
        metadata=GroupMetadata(description=group.description or None),
    )


def image_view(image: Image) -> ImageView:
    """Describe an image."""
    id_ = named_uuid(IMAGE, image.name)
    name, _, tag = image.reference.partition(":")
    return ImageView(
        id=id_,
        entity_id=id_,
        name=image.reference,
        image=name,
        registry=_REGISTRY,
        registry_id=named_uuid("registry", _REGISTRY),
        tag=tag or None,
        architecture=image.architecture,
        labels=[ImageLabel(key=key, value=value) for key, value in image.labels.items()],
    )
