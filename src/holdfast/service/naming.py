"""Checks that named things exist, and suggests similar names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain import failure_catalogue
from holdfast.domain.containers import LOCAL
from holdfast.domain.file_settings import FileSettings
from holdfast.domain.record import evolve
from holdfast.domain.suggestion import closest
from holdfast.domain.terms.resources import PODS
from holdfast.errors import NotFound, Problem
from holdfast.ports.store import JobFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.domain.access.grants import Access, Permissions
    from holdfast.domain.containers import EngineInfo
    from holdfast.domain.job import Attempt, Job
    from holdfast.domain.notifier import Notify
    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.domain.workloads.base import Owner
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.store import Store

MOST_LISTED = 20
"""Names listed in an error."""


def unknown_names(
    names: Sequence[str], existing: Iterable[str], kind: str, path: Callable[[int], str]
) -> list[Problem]:
    """Report each name that does not exist, at ``path(index)``."""
    names_known = set(existing)
    return [
        Problem(
            path(index),
            f"{kind} {name!r} does not exist",
            allowed=tuple(sorted(names_known)[:MOST_LISTED]),
            hint=closest(name, names_known) or f"create the {kind} first",
        )
        for index, name in enumerate(names)
        if name not in names_known
    ]


def unknown_notifiers(notify: Sequence[Notify], existing: Iterable[str]) -> list[Problem]:
    """Report each notifier that does not exist."""
    return unknown_names([wish.to for wish in notify], existing, "notifier", lambda index: f"spec.notify[{index}].to")


def unknown_categories(policy: RetryPolicy, catalogue: Catalogue) -> list[Problem]:
    """Report each category and subcategory in a policy's rules that no failure can have."""
    if not any(rule.categories or rule.subcategories for rule in policy.rules):
        return []
    by_category = _subcategories(catalogue)
    problems = list[Problem]()
    for place, rule in enumerate(policy.rules):
        names = sorted(rule.categories or ())
        problems += _unknown_to_rule(place, "onCategory", names, by_category, "failure category")
        if within := [by_category[name] for name in names or by_category if name in by_category]:
            subcategories = sorted(rule.subcategories or ())
            problems += _unknown_to_rule(place, "onSubcategory", subcategories, set().union(*within), "subcategory")
    return problems


def _unknown_to_rule(place: int, field: str, names: Sequence[str], existing: Iterable[str], kind: str) -> list[Problem]:
    return unknown_names(names, existing, kind, lambda _: f"spec.rules[{place}].{field}")


def _subcategories(catalogue: Catalogue) -> dict[str, set[str]]:
    """Return the categories that failures can have, with their subcategories."""
    configured = catalogue.configured or FileSettings("")
    own = [*configured.categories, *catalogue.categories]
    built_in = () if configured.default_category else failure_catalogue.builtin_beside(own)
    subcategories: dict[str, set[str]] = {}
    for category in (*own, *built_in, failure_catalogue.INTERNAL):
        subcategories.setdefault(category.name, set()).update(
            rule.subcategory for rule in category.rules if rule.subcategory
        )
    if configured.default_category:
        subcategories.setdefault(configured.default_category, set()).add(configured.default_subcategory)
    return subcategories


def not_found(name: str, existing: Iterable[str], kind: str) -> NotFound:
    """Return the error for a name that does not exist."""
    names = sorted(existing)
    hint = closest(name, names) or (f"existing ones: {', '.join(names[:MOST_LISTED])}" if names else None)
    return NotFound(f"{kind} {name!r} does not exist", hint=hint)


def find_attempt(job: Job, attempts: Sequence[Attempt], number: int) -> Attempt:
    """Pick an attempt by number.

    Raises:
        NotFound: There is none.
    """
    for attempt in attempts:
        if attempt.number == number:
            return attempt
    numbers = ", ".join(str(attempt.number) for attempt in attempts)
    msg = f"job {job.name!r} ({job.id}) has no attempt {number}"
    raise NotFound(msg, hint=f"its attempts: {numbers}" if numbers else "it has no attempt yet")


def engines_of(store: Store) -> Sequence[EngineInfo]:
    """List the engines that executors have reported, with their resources; the process engine if there are none."""
    nodes = [node for node in store.nodes() if node.engine.name]
    cluster = frozenset(name for name, _ in store.catalogue().settings.resources)
    offers = dict.fromkeys(dict.fromkeys(node.engine for node in nodes) or (LOCAL,), cluster)
    for node in nodes:
        offers[node.engine] |= {name for name, _ in node.capacity.named if name != PODS}
    return [evolve(engine, offers=names) for engine, names in offers.items()]


def owner_id_of(store: Store, kind: type[Owner], reference: str) -> str:
    """Find the id of an array or a job set, also of a deleted one that still has jobs.

    Raises:
        NotFound: It does not exist, and has no jobs.
    """
    try:
        return store.left_of(kind, reference).id
    except NotFound:
        if store.jobs(JobFilter(job_set=reference), limit=1):
            return reference
        raise


_GROUP = "group:"
_ISSUER_SEPARATOR = ":"
"""Part of the name of every group that does not come from the operating system."""


def unknown_groups_in_roles(access: Access, is_group: Callable[[str], bool]) -> list[Problem]:
    """Report the groups with a role that the machine does not have.

    Args:
        access: The settings.
        is_group: Whether the machine has a group; may take a while.
    """
    return _unknown_groups(((f"access.{role}", subjects) for role, subjects in access.roles or ()), is_group)


def unknown_groups_in_permissions(permissions: Permissions, is_group: Callable[[str], bool]) -> list[Problem]:
    """Report the groups in a queue's permissions that the machine does not have; see ``unknown_groups_in_roles``."""
    places = (
        (f"spec.permissions[{number}].subjects", permission.subjects) for number, permission in enumerate(permissions)
    )
    return _unknown_groups(places, is_group)


def _unknown_groups(places: Iterable[tuple[str, tuple[str, ...]]], is_group: Callable[[str], bool]) -> list[Problem]:
    hint = "this takes effect once the group exists; write a group of a token issuer with its prefix: group:oidc:NAME"
    groups = [
        (f"{place}[{number}]", subject.removeprefix(_GROUP))
        for place, subjects in places
        for number, subject in enumerate(subjects)
        if subject.startswith(_GROUP)
    ]
    return [
        Problem(path, f"there is no group {name!r} on the server's machine", hint=hint)
        for path, name in groups
        if _ISSUER_SEPARATOR not in name and not is_group(name)
    ]
