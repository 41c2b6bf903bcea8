"""Projects, which are the queues, and their domains."""

from uuid import UUID

from holdfast.api.backendai.listing import list_rows
from holdfast.api.backendai.models.entries import SearchDomainsRequest, SearchProjectsRequest
from holdfast.api.backendai.models.entry_views import (
    DomainBasics,
    DomainLifecycle,
    DomainNode,
    ProjectBasics,
    ProjectLifecycle,
    ProjectOrganization,
    ProjectView,
)
from holdfast.api.backendai.models.parts import ListAnswer
from holdfast.api.backendai.routing import ROUTES, BackendAiCall
from holdfast.api.backendai.views import named_uuid
from holdfast.domain.job import Queue
from holdfast.domain.terms.projects import DEFAULT_DOMAIN, Domain
from holdfast.service.operations.catalogue import ProjectDomains, Queues
from holdfast.service.sessions.directory import DOMAIN_KIND, PROJECT, Directory

PROJECTS, DOMAINS = "/v2/projects", "/v2/domains"


@ROUTES.add("POST", f"{PROJECTS}/search", "project_search")
def search_projects(call: BackendAiCall, body: SearchProjectsRequest) -> ListAnswer[ProjectView]:
    """Search among the projects."""
    fields = {
        "id": lambda queue: named_uuid(PROJECT, queue.name),
        "name": lambda queue: queue.name,
        "domain_name": lambda queue: queue.domain,
        "type": lambda _: "general",
        "is_active": lambda queue: not queue.paused,
    }
    return list_rows(body, body.filter, Queues(call.backend.store).list(call.caller), fields, project_view)


@ROUTES.add("GET", f"{PROJECTS}/{{project_id}}", "project_read")
def read_project(call: BackendAiCall, project_id: UUID) -> ProjectView:
    """Read a project."""
    queues = Queues(call.backend.store)
    queues.list(call.caller)
    return project_view(Directory(call.backend.store.catalogue()).project(str(project_id)))


@ROUTES.add("POST", f"{DOMAINS}/search", "domain_search")
def search_domains(call: BackendAiCall, body: SearchDomainsRequest) -> ListAnswer[DomainNode]:
    """Search among the domains."""
    fields = {
        "id": lambda domain: named_uuid(DOMAIN_KIND, domain.name),
        "name": lambda domain: domain.name,
        "description": lambda domain: domain.description,
        "is_active": lambda domain: domain.active,
    }
    return list_rows(body, body.filter, ProjectDomains(call.backend.store).list(call.caller), fields, domain_view)


@ROUTES.add("GET", f"{DOMAINS}/{{domain_name}}", "domain_read")
def read_domain(call: BackendAiCall, domain_name: str) -> DomainNode:
    """Read a domain."""
    return domain_view(ProjectDomains(call.backend.store).get(call.caller, domain_name))


def project_view(queue: Queue) -> ProjectView:
    """Describe a project."""
    id_ = named_uuid(PROJECT, queue.name)
    return ProjectView(
        id=id_,
        entity_id=id_,
        basic_info=ProjectBasics(name=queue.name),
        organization=ProjectOrganization(domain_name=queue.domain),
        lifecycle=ProjectLifecycle(is_active=not queue.paused),
    )


def domain_view(domain: Domain) -> DomainNode:
    """Describe a domain."""
    id_ = named_uuid(DOMAIN_KIND, domain.name)
    return DomainNode(
        id=id_,
        entity_id=id_,
        basic_info=DomainBasics(name=domain.name, description=domain.description or None),
        lifecycle=DomainLifecycle(is_active=domain.active, is_default=domain.name == DEFAULT_DOMAIN),
    )
