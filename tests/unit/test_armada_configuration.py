"""Armada's configuration file: what it says over the settings, what it leaves alone, and what is wrong with it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from holdfast.app.loops.configuring import read_file
from holdfast.compiled.codec import dump_spec
from holdfast.controller.policy_catalog import PolicyCatalog
from holdfast.dialects.armada.jobs import read_items
from holdfast.domain.access import Principal, Role
from holdfast.domain.access.grants import AS_BEFORE
from holdfast.domain.audit import Caller
from holdfast.domain.classify import classify
from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.domain.job import Job, Queue
from holdfast.domain.policy.model import Backoff, RetryPolicy, RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import InvalidSetting
from holdfast.service.manifests.armada import read_configuration
from holdfast.service.operations.settings import SettingsOperations
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.domain.file_settings import FileSettings

DOCUMENT = """
scheduling:
  retryPolicy:
    enabled: true
    globalMaxRetries: 20
    defaultPolicyName: default
    defaultBackoff:
      initialDelay: 0s
      maxDelay: 10m
      multiplier: 2.0
"""
CATEGORIES = """
application:
  clusterId: one
  errorCategories:
    defaultCategory: other
    categories:
      - name: zz-first
        rules: [{onExitCodes: {operator: In, values: [7]}}]
      - name: aa-second
        rules: [{onExitCodes: {operator: In, values: [7, 8]}, hint: look there}]
"""
AMOUNTS = {"cpu": "1", "memory": "1Gi"}
CONTAINER = {"name": "main", "command": ["true"], "resources": {"requests": AMOUNTS, "limits": AMOUNTS}}
BY = Caller(Principal("ann", roles=(Role.ADMIN,)), 0.0, "here", "1")
POD = read_items("ml", "s", [{"namespace": "n", "podSpec": {"containers": [CONTAINER]}}])[0].spec.pod
LOST = RunOutcome(conditions=frozenset({FailureCondition.EXECUTOR_LOST.value}), ended_by=EndedBy.LOST)


def read(text: str) -> FileSettings:
    return read_configuration(text, "armada.yaml")


def test_the_documents_section_is_read_as_it_stands() -> None:
    retries = read(DOCUMENT).retries
    assert retries is not None
    assert (retries.enabled, retries.global_max_retries, retries.default_policy) == (True, 20, "default")
    assert retries.default_backoff == Backoff(0.0, 600.0, 2.0)


def test_what_the_section_leaves_out_is_upstreams_and_it_is_off() -> None:
    retries = read("scheduling: {retryPolicy: {}}").retries
    assert retries is not None
    assert (retries.enabled, retries.global_max_retries, retries.default_policy) == (False, 20, None)
    assert retries.default_backoff == Backoff(0.0, 600.0, 2.0)
    assert read(CATEGORIES).enabled


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "has 0 documents"),
        ("a: 1\n---\nb: 1\n", "has 2 documents"),
        ("scheduling: [", ""),
        ("schedulin: {retryPolicy: {enabled: true}}", "has neither scheduling.retryPolicy nor"),
        ("scheduling: {retryPolicy: {enabled: 3}}", "scheduling.retryPolicy.enabled"),
        ("scheduling: {retryPolicy: {globalMaxRetries: -1}}", "scheduling.retryPolicy.globalMaxRetries"),
        ("scheduling: {retryPolicy: {globalMaxRetry: 1}}", "did you mean globalMaxRetries?"),
        ("scheduling: {retryPolicy: 3}", "scheduling.retryPolicy"),
        ("application: {errorCategories: {categories: [{}]}}", "category must have a name"),
    ],
)
def test_what_is_wrong_is_said_with_the_files_name(text: str, wrong: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        read(text)
    assert "armada.yaml" in caught.value.message
    assert wrong in "; ".join(map(str, caught.value.problems))


@pytest.mark.timeout(10)
def test_what_is_no_file_is_refused_and_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "latin").write_bytes(b"a: \xe4")
    for name, why in (("pipe", "not a file"), ("", "not a file"), ("gone", "No such file"), ("latin", "not UTF-8")):
        with pytest.raises(InvalidSetting, match=why):
            read_file(tmp_path / name)


def test_the_file_stands_over_the_settings_and_leaves_them_as_they_were_when_it_is_gone() -> None:
    store = MemoryStore()
    store.put_entry(RetryPolicy("mine"))
    own = RetrySettings(global_max_retries=3, retry_share=0.25)
    store.put_settings(own, "mine")
    assert store.put_configured(read(DOCUMENT))
    assert not store.put_configured(read(DOCUMENT))
    found = store.catalogue()
    assert (found.settings.global_max_retries, found.settings.retry_share) == (20, 0.25)
    assert found.default_policy == "default"
    store.put_settings(evolve(found.settings, retry_share=0.75), found.default_policy)
    assert store.put_configured(None)
    assert store.catalogue().settings == evolve(own, retry_share=0.75)
    assert store.catalogue().default_policy == "mine"


def test_a_setting_of_the_file_is_refused_with_the_files_name_and_others_are_not() -> None:
    store = MemoryStore()
    store.put_configured(read(DOCUMENT))
    settings, policy, _ = SettingsOperations(store).get(BY)
    with pytest.raises(InvalidSetting) as caught:
        SettingsOperations(store).put(BY, evolve(settings, global_max_retries=1), None, AS_BEFORE, dry_run=True)
    assert [(one.path, one.message) for one in caught.value.problems] == [
        ("globalMaxRetries", "is set by armada.yaml"),
        ("defaultPolicyName", "is set by armada.yaml"),
    ]
    SettingsOperations(store).put(BY, evolve(settings, retry_share=0.1), policy, AS_BEFORE)
    assert store.catalogue().settings.retry_share == 0.1


def test_categories_are_looked_at_in_the_files_order_and_the_default_takes_the_rest() -> None:
    store = MemoryStore()
    store.put_configured(read(CATEGORIES))
    categories = PolicyCatalog(store).categories
    assert [one.name for one in read(CATEGORIES).categories] == ["zz-first", "aa-second"]

    def category(code: int) -> tuple[str, str]:
        outcome = RunOutcome(containers=(ContainerResult(exit_code=code, name="main"),))
        found = categories.match(classify(outcome), outcome)
        return found.category, found.hint

    assert [category(code) for code in (7, 8, 9)] == [("zz-first", ""), ("aa-second", "look there"), ("other", "")]


def test_what_is_lost_with_its_machine_is_internal() -> None:
    found = PolicyCatalog(MemoryStore()).categories.match(classify(LOST), LOST)
    assert (found.category, found.subcategory) == ("internal", "lease-expired")


@pytest.mark.parametrize(("enabled", "applies"), [("true", True), ("false", False)])
def test_policies_apply_to_jobs_of_the_door_while_the_file_says_so_and_to_others_always(
    enabled: str, *, applies: bool
) -> None:
    store = MemoryStore()
    store.put_entry(RetryPolicy("infra"))
    store.put_entry(Queue("ml", retry_policies=("infra",)))
    store.put_configured(read(f"scheduling: {{retryPolicy: {{enabled: {enabled}}}}}"))
    of_door = JobSpec("a", ("true",), pod=POD)
    native = JobSpec("a", ("true",))
    catalog = PolicyCatalog(store)

    def asked(spec: JobSpec) -> list[str | None]:
        policies = catalog.compiled(Job("j", "j", "ml", 0, 0.0, dump_spec(spec)), spec)
        return [policies.default.policy, *{rule.name for rule in policies.rules if rule.name == "executor-lost"}]

    assert asked(of_door) == (["infra"] if applies else [None, "executor-lost"])
    assert asked(native) == ["infra", "executor-lost"]
