"""What operators write: retry policies, queues, failure categories and settings, each under its address."""

from collections.abc import Mapping, Sequence

from holdfast.api.http.endpoints.endpoint import (
    DryRun,
    Endpoints,
    IfMatch,
    MustExist,
    Name,
    Reply,
    Takes,
    as_if,
    created,
)
from holdfast.api.http.endpoints.versions import read_match
from holdfast.domain.access.grants import Access, Sight
from holdfast.domain.audit import Caller
from holdfast.domain.category import FailureCategory
from holdfast.domain.failure_catalogue import BUILT_IN
from holdfast.domain.job import Queue
from holdfast.domain.policy.model import BuiltIn, RetryPolicy, RetrySettings
from holdfast.errors import Problem
from holdfast.service.manifests.reading import manifest_of, read_settings
from holdfast.service.manifests.showing import settings_of, spec_of, warnings_of
from holdfast.service.manifests.text import Text
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.catalogue import Categories, Policies, Queues
from holdfast.service.operations.settings import SettingsOperations
from holdfast.wire.catalogue import (
    CategoryPage,
    CategoryView,
    ConfigurationView,
    PolicyPage,
    PolicyView,
    QueuePage,
    QueueView,
    SettingsView,
)
from holdfast.wire.problems import problem_entry

_POLICIES = Endpoints("retry policies")
_QUEUES = Endpoints("queues")
_CATEGORIES = Endpoints("failure categories")
_SETTINGS = Endpoints("settings")
ENDPOINTS = (_POLICIES, _QUEUES, _CATEGORIES, _SETTINGS)

_POLICY = Takes("A manifest of kind RetryPolicy.")
_QUEUE = Takes("A manifest of kind Queue.")
_CATEGORY = Takes("A manifest of kind FailureCategory.")
_ALL_SETTINGS = Takes(
    "All settings; one left out gets its default, but `access` and `othersSee` stay as they are.",
    {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "globalMaxRetries": {"type": ["integer", "null"], "minimum": 0},
            "defaultBackoff": {"type": ["object", "null"]},
            "defaultPolicyName": {"type": ["string", "null"]},
            "handlerLimits": {"type": ["object", "null"]},
            "resources": {"type": ["object", "null"]},
            "retryShare": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
            "builtinPolicy": {"type": ["string", "null"], "enum": [*map(str, BuiltIn), None]},
            "fluster": {"type": ["object", "null"]},
            "access": {"type": ["object", "null"]},
            "othersSee": {"type": ["string", "null"], "enum": [*map(str, Sight), None]},
        },
    },
)


def _policy_view(policies: Policies, by: Caller, policy: RetryPolicy, submitters: Mapping[str, str]) -> PolicyView:
    return PolicyView(
        name=policy.name,
        submitted_by=submitters.get(policy.name, ""),
        revision=policy.revision,
        spec=spec_of(policy),
        warnings=list(map(problem_entry, policies.warnings(by, policy))),
    )


def _policy(backend: Backend, by: Caller, policy: RetryPolicy, *, status: int = 200, dry_run: bool = False) -> Reply:
    policies = Policies(backend.store)
    view = _policy_view(policies, by, policy, policies.submitters(by))
    return Reply(as_if(view, by, dry_run=dry_run), status, version=str(policy.revision))


@_POLICIES.add("GET", "/retry-policies", PolicyPage, summary="List retry policies")
def list_policies(backend: Backend, by: Caller) -> PolicyPage:
    """List all, by name."""
    policies = Policies(backend.store)
    submitters = policies.submitters(by)
    return PolicyPage(items=[_policy_view(policies, by, policy, submitters) for policy in policies.list(by)])


@_POLICIES.add("POST", "/retry-policies", PolicyView, 409, summary="Create a retry policy", status=201, takes=_POLICY)
def create_policy(backend: Backend, by: Caller, body: Text, *, dry_run: DryRun = False) -> Reply:
    """Create a retry policy; it must be new."""
    policy = Policies(backend.store).put(by, manifest_of(body, RetryPolicy), create=True, dry_run=dry_run)
    return _policy(backend, by, policy, status=created(dry_run=dry_run), dry_run=dry_run)


@_POLICIES.add("GET", "/retry-policies/{name}", PolicyView, 404, summary="Read a retry policy")
def get_policy(backend: Backend, by: Caller, name: Name) -> Reply:
    """Read one."""
    return _policy(backend, by, Policies(backend.store).get(by, name))


@_POLICIES.add(
    "PUT", "/retry-policies/{name}", PolicyView, 404, 409, summary="Create or replace a retry policy", takes=_POLICY
)
def put_policy(  # noqa: PLR0913 - the parameters of an address
    backend: Backend,
    by: Caller,
    name: Name,
    body: Text,
    *,
    if_match: IfMatch = None,
    must_exist: MustExist = False,
    dry_run: DryRun = False,
) -> Reply:
    """Create or replace a retry policy."""
    match = read_match(if_match)
    policy = manifest_of(body, RetryPolicy, name=name)
    create = False if must_exist or match.exists else None
    stored = Policies(backend.store).put(by, policy, create=create, if_match=match.versions, dry_run=dry_run)
    return _policy(backend, by, stored, dry_run=dry_run)


@_POLICIES.add("DELETE", "/retry-policies/{name}", None, 404, 409, summary="Delete a retry policy", status=204)
def delete_policy(backend: Backend, by: Caller, name: Name, *, if_match: IfMatch = None) -> None:
    """Delete one that nothing needs."""
    Policies(backend.store).delete(by, name, if_match=read_match(if_match).versions)


def _queue_view(backend: Backend, by: Caller, queue: Queue, submitters: Mapping[str, str] | None = None) -> QueueView:
    queues = Queues(backend.store)
    warnings = queues.warnings(by, queue, backend.nodes, backend.is_group)
    return QueueView(
        name=queue.name,
        submitted_by=(queues.submitters(by) if submitters is None else submitters).get(queue.name, ""),
        spec=spec_of(queue),
        warnings=list(map(problem_entry, warnings)),
    )


@_QUEUES.add("GET", "/queues", QueuePage, summary="List queues")
def list_queues(backend: Backend, by: Caller) -> QueuePage:
    """List all, by name."""
    queues = Queues(backend.store)
    submitters = queues.submitters(by)
    return QueuePage(items=[_queue_view(backend, by, queue, submitters) for queue in queues.list(by)])


@_QUEUES.add("POST", "/queues", QueueView, 409, summary="Create a queue", status=201, takes=_QUEUE)
def create_queue(backend: Backend, by: Caller, body: Text, *, dry_run: DryRun = False) -> Reply:
    """Create a queue; it must be new."""
    queue = Queues(backend.store).put(by, manifest_of(body, Queue), create=True, dry_run=dry_run)
    return Reply(as_if(_queue_view(backend, by, queue), by, dry_run=dry_run), created(dry_run=dry_run))


@_QUEUES.add("GET", "/queues/{name}", QueueView, 404, summary="Read a queue")
def get_queue(backend: Backend, by: Caller, name: Name) -> QueueView:
    """Read one."""
    return _queue_view(backend, by, Queues(backend.store).get(by, name))


@_QUEUES.add("PUT", "/queues/{name}", QueueView, 404, summary="Create or replace a queue", takes=_QUEUE)
def put_queue(
    backend: Backend, by: Caller, name: Name, body: Text, *, must_exist: MustExist = False, dry_run: DryRun = False
) -> QueueView:
    """Create or replace a queue."""
    queue, create = manifest_of(body, Queue, name=name), False if must_exist else None
    stored = Queues(backend.store).put(by, queue, create=create, dry_run=dry_run)
    return as_if(_queue_view(backend, by, stored), by, dry_run=dry_run)


@_QUEUES.add("DELETE", "/queues/{name}", None, 404, 409, summary="Delete a queue", status=204)
def delete_queue(backend: Backend, by: Caller, name: Name) -> None:
    """Delete one that nothing needs."""
    Queues(backend.store).delete(by, name)


def _category_view(category: FailureCategory, submitters: Mapping[str, str]) -> CategoryView:
    return CategoryView(
        name=category.name,
        submitted_by=submitters.get(category.name, ""),
        spec=spec_of(category),
        built_in=category in BUILT_IN,
        warnings=list(map(problem_entry, warnings_of(category))),
    )


@_CATEGORIES.add("GET", "/failure-categories", CategoryPage, summary="List failure categories")
def list_categories(backend: Backend, by: Caller) -> CategoryPage:
    """List all, in order of evaluation."""
    categories = Categories(backend.store)
    submitters = categories.submitters(by)
    return CategoryPage(items=[_category_view(category, submitters) for category in categories.list(by)])


@_CATEGORIES.add(
    "POST",
    "/failure-categories",
    CategoryView,
    409,
    summary="Create a failure category",
    status=201,
    takes=_CATEGORY,
)
def create_category(backend: Backend, by: Caller, body: Text, *, dry_run: DryRun = False) -> Reply:
    """Create a failure category; it must be new."""
    category = Categories(backend.store).put(by, manifest_of(body, FailureCategory), create=True, dry_run=dry_run)
    view = _category_view(category, Categories(backend.store).submitters(by))
    return Reply(as_if(view, by, dry_run=dry_run), created(dry_run=dry_run))


@_CATEGORIES.add("GET", "/failure-categories/{name}", CategoryView, 404, summary="Read a failure category")
def get_category(backend: Backend, by: Caller, name: Name) -> CategoryView:
    """Read one."""
    categories = Categories(backend.store)
    return _category_view(categories.get(by, name), categories.submitters(by))


@_CATEGORIES.add(
    "PUT",
    "/failure-categories/{name}",
    CategoryView,
    404,
    summary="Create or replace a failure category",
    takes=_CATEGORY,
)
def put_category(
    backend: Backend, by: Caller, name: Name, body: Text, *, must_exist: MustExist = False, dry_run: DryRun = False
) -> CategoryView:
    """Create or replace a failure category."""
    category, create = manifest_of(body, FailureCategory, name=name), False if must_exist else None
    categories = Categories(backend.store)
    stored = categories.put(by, category, create=create, dry_run=dry_run)
    return as_if(_category_view(stored, categories.submitters(by)), by, dry_run=dry_run)


@_CATEGORIES.add(
    "DELETE", "/failure-categories/{name}", None, 404, 409, summary="Delete a failure category", status=204
)
def delete_category(backend: Backend, by: Caller, name: Name) -> None:
    """Delete one that nothing needs."""
    Categories(backend.store).delete(by, name)


def _settings_view(
    settings: RetrySettings, default_policy: str | None, access: Access, warnings: Sequence[Problem]
) -> SettingsView:
    told = [problem_entry(one) for one in warnings]
    return SettingsView.model_validate({**settings_of(settings, default_policy, access), "warnings": told})


@_SETTINGS.add("GET", "/settings", SettingsView, summary="Read the settings")
def get_settings(backend: Backend, by: Caller) -> SettingsView:
    """Read what the operator set for everyone."""
    settings, policy, access = SettingsOperations(backend.store).get(by)
    return _settings_view(
        settings, policy, access, SettingsOperations(backend.store).warnings(by, access, backend.is_group)
    )


@_SETTINGS.add("PUT", "/settings", SettingsView, summary="Replace the settings", takes=_ALL_SETTINGS)
def put_settings(backend: Backend, by: Caller, body: Text, *, dry_run: DryRun = False) -> SettingsView:
    """Replace the settings; they apply to what is judged from now on."""
    settings, policy, access = read_settings(body)
    access = SettingsOperations(backend.store).put(by, settings, policy, access, dry_run=dry_run)
    return _settings_view(
        settings, policy, access, SettingsOperations(backend.store).warnings(by, access, backend.is_group)
    )


@_SETTINGS.add("POST", "/settings/reload", ConfigurationView, 409, 422, summary="Read the configuration file again")
def reload_settings(backend: Backend, by: Caller) -> ConfigurationView:
    """Read the file that HOLDFAST_ARMADA_CONFIG names; one that is not valid changes nothing."""
    operations = SettingsOperations(backend.store)
    found, changed = operations.reload(by, backend.reload)
    told = found.retries
    return ConfigurationView(
        file=found.file,
        changed=changed,
        enabled=None if told is None else told.enabled,
        global_max_retries=None if told is None else told.global_max_retries,
        default_policy_name=None if told is None else told.default_policy,
        categories=[one.name for one in found.categories],
        warnings=list(map(problem_entry, operations.warnings(by, Access(), backend.is_group))),
    )
