"""Reading and writing queues, failure categories and settings; dispatch by kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.compiled.codec import OperatorSettings, dump_entry, load_entry
from holdfast.dialects.documents import read_documents
from holdfast.dialects.manifests import format_of, read_manifest
from holdfast.dialects.native.catalogue import read_queue_manifest, read_settings, write_queue, write_settings
from holdfast.dialects.native.category import write_category
from holdfast.domain.access import Role
from holdfast.domain.access.grants import AS_BEFORE, Access, Permission, Right, Sight
from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.job import Ceiling, Queue, UserLimits
from holdfast.domain.policy.model import (
    Action,
    Backoff,
    BuiltIn,
    ContainerScope,
    ExitCodeOperator,
    ExitCodes,
    RetryDefaults,
    RetrySettings,
)
from holdfast.domain.record import evolve
from holdfast.domain.terms.entries import DOMAIN, IMAGE, KEYPAIR, RESOURCE_GROUP, EntryInfo
from holdfast.domain.terms.projects import Domain, Image, KeyPair, ResourceGroup
from holdfast.errors import InvalidManifest, InvalidRequest, Problem
from tests.reading import read_manifests

if TYPE_CHECKING:
    from holdfast.ports.entries import Entry

STORED = Path(__file__).parents[1] / "data" / "stored"


def manifest(kind: str, name: str | None, spec: object) -> dict[str, Any]:
    return {"apiVersion": "holdfast.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def problems_of(value: dict[str, Any]) -> tuple[Problem, ...]:
    with pytest.raises(InvalidManifest) as caught:
        read_manifest(value)
    return caught.value.problems


def test_every_field_of_a_queue_is_read_and_written() -> None:
    spec = {
        "weight": 2.5,
        "maxRunning": {"cpu": "2500m", "memory": "1Gi", "gpu": 2},
        "maxRunningJobs": 7,
        "perUser": {"maxRunning": {"cpu": "500m", "licence": 1}, "maxRunningJobs": 2},
        "retryPolicies": ["infra", "ml"],
        "paused": True,
        "permissions": [{"subjects": ["user:ann", "group:ml"], "verbs": ["submit", "watch"]}],
        "domain": "research",
        "sessionRetry": {"max_retries": 2, "max_retry_delay": None},
    }
    queue = read_manifest(manifest("Queue", "q", spec))
    allowed = (Permission(("user:ann", "group:ml"), (Right.SUBMIT, Right.WATCH)),)
    each = UserLimits(Ceiling(cpu_m=500, named=(("licence", 1000),)), max_running_jobs=2)
    most = Ceiling(2500, 1024**3, 2)
    bare = Queue("q", 2.5, most, 7, ("infra", "ml"), paused=True, permissions=allowed, per_user=each)
    assert queue == evolve(bare, domain="research", session_retry={"max_retries": 2, "max_retry_delay": None})
    assert isinstance(queue, Queue)
    assert read_manifest(manifest("Queue", "q", write_queue(queue))) == queue


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ({}, Ceiling()),
        ({"gpu": 0}, Ceiling(gpu=0)),
        ({"cpu": 0, "memory": 0}, Ceiling(cpu_m=0, memory=0)),
        ({"cpu": 2}, Ceiling(cpu_m=2000)),
        ({"licence/matlab": 0.5, "scratch": 0}, Ceiling(named=(("licence/matlab", 500), ("scratch", 0)))),
    ],
)
def test_an_explicit_limit_of_none_is_none_and_one_left_out_is_no_limit(
    limits: dict[str, object], most: Ceiling
) -> None:
    queue = read_manifest(manifest("Queue", "q", {"maxRunning": limits}))
    assert isinstance(queue, Queue)
    assert queue.max_running == most
    assert read_manifest(manifest("Queue", "q", write_queue(queue))) == queue


def test_a_queue_needs_a_name_only() -> None:
    assert read_manifest({"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "q"}}) == Queue("q")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"weight": 0}, "spec.weight"),
        ({"weight": -1}, "spec.weight"),
        ({"maxRunningJobs": 0}, "spec.maxRunningJobs"),
        ({"maxRunning": {"cpus": 1}}, "spec.maxRunning.cpus"),
        ({"perUser": {"maxRunningJobs": 0}}, "spec.perUser.maxRunningJobs"),
        ({"perUser": {"maxRunning": {"cpus": 1}}}, "spec.perUser.maxRunning.cpus"),
        ({"perUser": {"weight": 1}}, "spec.perUser.weight"),
        ({"perUser": 3}, "spec.perUser"),
        ({"maxRunning": {"licence/": 1}}, "spec.maxRunning.licence/"),
        ({"maxRunning": {"licence/matlab": "many"}}, "spec.maxRunning.licence/matlab"),
        ({"paused": "yes"}, "spec.paused"),
        ({"retryPolicies": [1]}, "spec.retryPolicies[0]"),
        ({"wieght": 1}, "spec.wieght"),
        ({"domain": "Research"}, "spec.domain"),
        ({"sessionRetry": [2]}, "spec.sessionRetry"),
        ({"sessionRetry": {"retry_delay": 0}}, "spec.sessionRetry.retry_delay"),
        ("fast", "spec"),
    ],
)
def test_a_wrong_queue_is_refused(spec: object, path: str) -> None:
    assert [problem.path for problem in problems_of(manifest("Queue", "q", spec))] == [path]


KEY = "AKIAIOSFODNN7EXAMPLE"
OF_SESSIONS: list[tuple[EntryInfo, dict[str, Any], Entry]] = [
    (DOMAIN, {}, Domain("lab")),
    (
        DOMAIN,
        {"description": "one laboratory", "active": False, "sessionRetry": {"max_retry_delay": None}},
        Domain("lab", "one laboratory", active=False, session_retry={"max_retry_delay": None}),
    ),
    (RESOURCE_GROUP, {}, ResourceGroup("lab")),
    (
        RESOURCE_GROUP,
        {"description": "fast ones", "active": False, "nodeSelector": {"example.org/gpu": "a100"}},
        ResourceGroup("lab", "fast ones", active=False, node_selector={"example.org/gpu": "a100"}),
    ),
    (IMAGE, {"reference": "python:3.11-ubuntu22.04"}, Image("lab", "python:3.11-ubuntu22.04")),
    (
        IMAGE,
        {
            "reference": "cr.example.org:5000/stable/python@sha256:ab",
            "architecture": "aarch64",
            "labels": {"ai.backend.role": "COMPUTE"},
            "env": {"A": "b"},
            "command": ["apptainer", "exec", "python.sif"],
        },
        Image(
            "lab",
            "cr.example.org:5000/stable/python@sha256:ab",
            "aarch64",
            {"ai.backend.role": "COMPUTE"},
            {"A": "b"},
            ("apptainer", "exec", "python.sif"),
        ),
    ),
    (KEYPAIR, {"owner": "ann"}, KeyPair(KEY, "ann")),
    (
        KEYPAIR,
        {"owner": "oidc:ann@example.org", "admin": True, "active": False, "description": "of the cron job"},
        KeyPair(KEY, "oidc:ann@example.org", admin=True, active=False, description="of the cron job"),
    ),
]


@pytest.mark.parametrize(("info", "spec", "entry"), OF_SESSIONS)
def test_every_field_of_what_sessions_need_is_read_written_and_stored(
    info: EntryInfo, spec: dict[str, Any], entry: Entry
) -> None:
    assert read_manifest(manifest(info.manifest, entry.name, spec)) == entry
    assert read_manifest(manifest(info.manifest, entry.name, format_of(info).write(entry))) == entry
    assert load_entry(type(entry), dump_entry(entry)) == entry


@pytest.mark.parametrize(
    ("info", "name", "spec", "paths"),
    [
        (DOMAIN, "lab", {"active": "maybe"}, ["spec.active"]),
        (DOMAIN, "lab", {"sessionRetry": {"retries": 1}}, ["spec.sessionRetry.retries"]),
        (DOMAIN, "lab", 3, ["spec"]),
        (RESOURCE_GROUP, "Lab", {"nodeSelector": {"gpu": "a b"}}, ["metadata.name", "spec.nodeSelector.gpu"]),
        (IMAGE, "python:3.11", None, ["metadata.name", "spec"]),
        (IMAGE, "lab", {}, ["spec.reference"]),
        (IMAGE, "lab", {"reference": "python 3", "env": {"1": "x"}}, ["spec.reference", "spec.env.1"]),
        (KEYPAIR, "akia", {}, ["metadata.name", "spec.owner"]),
        (KEYPAIR, KEY, {"owner": "ann", "secret": "x"}, ["spec.secret"]),
    ],
)
def test_what_sessions_cannot_use_is_refused(info: EntryInfo, name: str, spec: object, paths: list[str]) -> None:
    assert [problem.path for problem in problems_of(manifest(info.manifest, name, spec))] == paths


def test_every_field_of_a_failure_category_is_read_and_written() -> None:
    rules = [
        {"onExitCodes": {"operator": "In", "values": [74]}, "onConditions": ["AppError"], "containerName": "main"},
        {
            "onTerminationMessage": {"pattern": "a"},
            "onLog": {"pattern": "CUDA out of memory"},
            "subcategory": "oom",
            "suggestedAction": "Retry",
        },
        {"onPodError": {"pattern": "b"}, "hint": "look at the image"},
        {"onPodEvents": {"regexp": "c", "type": "Warning", "reason": "Failed"}},
    ]
    category = read_manifest(manifest("FailureCategory", "cuda_error", {"precedence": 3, "hint": "h", "rules": rules}))
    codes = ExitCodes(ExitCodeOperator.IN, frozenset({74}), ContainerScope.ANY_FAILED)
    assert category == FailureCategory(
        "cuda_error",
        (
            CategoryRule(exit_codes=codes, conditions=frozenset({"AppError"}), container_name="main"),
            CategoryRule(termination_message="a", log="CUDA out of memory", subcategory="oom", suggests=Action.RETRY),
            CategoryRule(pod_error="b", hint="look at the image"),
            CategoryRule(pod_event="c", pod_event_type="Warning", pod_event_reason="Failed"),
        ),
        precedence=3,
        hint="h",
    )
    assert isinstance(category, FailureCategory)
    assert read_manifest(manifest("FailureCategory", "cuda_error", write_category(category))) == category


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"rules": []}, "spec.rules"),
        ({}, "spec.rules"),
        ({"rules": [{}]}, "spec.rules[0]"),
        ({"rules": [{"containerName": "main"}]}, "spec.rules[0]"),
        ({"rules": [{"onLog": {"pattern": "("}}]}, "spec.rules[0].onLog.pattern"),
        ({"rules": [{"onPodEvents": {"regexp": "x"}}]}, "spec.rules[0].onPodEvents.type"),
        ({"rules": [{"onLog": {"pattern": "x"}, "subcategory": "a" * 64}]}, "spec.rules[0].subcategory"),
        ({"rules": [{"onLog": {"pattern": "x"}, "onLogs": 1}]}, "spec.rules[0].onLogs"),
        ({"rules": [{"onLog": {"pattern": "x"}}], "precedence": "high"}, "spec.precedence"),
    ],
)
def test_a_wrong_failure_category_is_refused(spec: object, path: str) -> None:
    assert [problem.path for problem in problems_of(manifest("FailureCategory", "c", spec))] == [path]


def test_settings_left_out_have_their_defaults() -> None:
    assert read_settings({}) == (RetrySettings(), None, AS_BEFORE)


def test_settings_are_read_and_written() -> None:
    value = {
        "globalMaxRetries": 0,
        "defaultBackoff": {"initialDelay": 0},
        "defaultPolicyName": "infra",
        "retryShare": 0.2,
        "builtinPolicy": "lost-only",
        "fluster": {"defaultMaxRetriesFailure": 2, "defaultRetryDelay": "1.5s"},
        "sessionRetryDefault": {"max_retries": 1, "max_retry_delay": None},
        "sessionRetries": False,
        "access": {"viewer": ["group:guests"], "admin": ["user:ann", "user:ann"], "user": []},
        "othersSee": "existence",
    }
    settings, name, access = read_settings(value)
    assert (settings.global_max_retries, settings.default_backoff, name) == (0, Backoff(initial_s=0.0), "infra")
    assert (settings.retry_share, settings.builtin) == (0.2, BuiltIn.LOST_ONLY)
    assert settings.fluster == RetryDefaults(2, 100, 1500)
    assert settings.session_retry_default == {"max_retries": 1, "max_retry_delay": None}
    assert settings.session_retries is False
    roles = ((Role.ADMIN, ("user:ann",)), (Role.VIEWER, ("group:guests",)))
    assert access == Access(roles, Sight.EXISTENCE)
    assert read_settings(write_settings(settings, name, access)) == (settings, name, access)


def test_wrong_grants_are_refused_together_each_at_its_place() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_settings({"access": {"admin": ["ann", "user:", "user:a b", 3], "owner": ["user:ann"]}, "othersSee": "all"})
    found = {problem.path: problem for problem in caught.value.problems}
    assert list(found) == ["othersSee", *(f"access.admin[{i}]" for i in range(4)), "access.owner"]
    assert found["access.admin[0]"].hint == "user:ann"
    assert found["othersSee"].allowed == ("nothing", "existence", "details", "everything")
    queue = {"permissions": [{"subjects": ["ann"], "verbs": ["run", "logs"]}, {"verbs": []}, "ann"]}
    paths = [problem.path for problem in problems_of(manifest("Queue", "q", queue))]
    assert paths == [
        "spec.permissions[2]",
        "spec.permissions[0].subjects[0]",
        "spec.permissions[0].verbs[0]",
        "spec.permissions[1].subjects",
    ]


def test_wrong_settings_are_refused_together() -> None:
    sessions = {"sessionRetryDefault": {"max_retries": -1}, "sessionRetries": "no"}
    wrong = {"globalMaxRetries": -1, "defaultBackof": {}, "retryShare": 1.5, "builtinPolicy": "some"}
    with pytest.raises(InvalidRequest) as caught:
        read_settings({**wrong, "fluster": {"defaultMaxRetriesPreemption": -1, "retries": 1}, **sessions})
    assert [problem.path for problem in caught.value.problems] == [
        "globalMaxRetries",
        "retryShare",
        "builtinPolicy",
        "fluster.defaultMaxRetriesPreemption",
        "fluster.retries",
        "sessionRetryDefault.max_retries",
        "sessionRetries",
        "defaultBackof",
    ]


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({}, ["apiVersion", "kind"]),
        ({"apiVersion": "holdfast.dev/v2", "kind": "Job"}, ["apiVersion"]),
        ({"apiVersion": "holdfast.dev/v1", "kind": "Jobs"}, ["kind"]),
        ({"apiVersion": "holdfast.dev/v1"}, ["kind"]),
        ({"apiVersion": 1, "kind": ["Job"]}, ["apiVersion", "kind"]),
        ({"apiVersion": "armadaproject.io/v1", "kind": "Queue"}, ["kind"]),
    ],
)
def test_an_unsupported_kind_lists_the_supported_ones(value: dict[str, Any], paths: list[str]) -> None:
    found = problems_of(value)
    assert [problem.path for problem in found] == paths
    assert all(problem.allowed for problem in found)


def test_the_problems_of_all_documents_come_together_with_their_document() -> None:
    with pytest.raises(InvalidManifest) as caught:
        read_manifests(
            "command: [x]\ngang: 0\n---\ncommand: [x]\n---\nkind: Job\napiVersion: holdfast.dev/v1\nspec: {}\n"
        )
    assert [(problem.path, problem.line) for problem in caught.value.problems] == [
        ("document[0].gang", 2),
        ("document[2].spec.command", 8),
    ]


def test_manifests_of_several_kinds_come_from_one_text() -> None:
    text = "command: [x]\n---\napiVersion: holdfast.dev/v1\nkind: Queue\nmetadata: {name: q}\n"
    assert [type(one).__name__ for one in read_manifests(text)] == ["JobSpec", "Queue"]
    assert read_manifest(read_documents('{"command": ["x"]}')[0]) == read_manifests(text)[0]


LIMITS = {"StartAttempts": {"timeout": "5m", "maxRetries": None}, "PromoteToRunning": {"timeout": 30}}


def test_limits_of_handlers_are_read_and_written_in_settings_and_queues() -> None:
    settings, _, _ = read_settings({"handlerLimits": LIMITS})
    assert settings.handler_limits == {
        "StartAttempts": {"timeout_s": 300.0, "max_retries": None},
        "PromoteToRunning": {"timeout_s": 30.0},
    }
    assert read_settings(write_settings(settings, None, AS_BEFORE))[:2] == (settings, None)
    problems: list[Problem] = []
    envelope = {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "q"}}
    queue = read_queue_manifest({**envelope, "spec": {"handlerLimits": LIMITS}}, path="", problems=problems)
    assert queue is not None
    assert queue.handler_limits == settings.handler_limits
    assert read_queue_manifest({**envelope, "spec": write_queue(queue)}, path="", problems=problems) == queue
    assert problems == []


def test_limits_that_no_handler_has_are_refused_with_those_there_are() -> None:
    wrong = {
        "StartAttempt": {"timeout": "1m"},
        "ScheduleAttempts": {"timeout": "1m"},
        "PromoteToRunning": {"maxRetries": 1},
        "PrepareAttempts": {"timeout": "0s", "retries": 1},
        "TerminateAttempts": {"maxRetries": 1},
    }
    with pytest.raises(InvalidRequest) as refused:
        read_settings({"handlerLimits": wrong})
    found = {problem.path: problem for problem in refused.value.problems}
    assert set(found) == {
        "handlerLimits.StartAttempt",
        "handlerLimits.ScheduleAttempts.timeout",
        "handlerLimits.PromoteToRunning.maxRetries",
        "handlerLimits.PrepareAttempts.timeout",
        "handlerLimits.PrepareAttempts.retries",
        "handlerLimits.TerminateAttempts",
    }
    assert found["handlerLimits.StartAttempt"].allowed == (
        "PrepareAttempts", "PromoteToRunning", "ScheduleAttempts", "StartAttempts",
    )  # fmt: skip
    assert "StartAttempts" in (found["handlerLimits.StartAttempt"].hint or "")
    assert "schedulingTimeout" in (found["handlerLimits.ScheduleAttempts.timeout"].hint or "")


def samples(version: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((STORED / f"catalogue-{version}.json").read_text())
    return found


@pytest.mark.parametrize("sample", samples(1), ids=lambda one: one["kind"])
def test_how_an_entry_is_stored_changes_only_with_its_version(sample: dict[str, str]) -> None:
    (document,) = read_documents(sample["source"])
    found: Any = (
        OperatorSettings(*read_settings(document.value)) if sample["kind"] == "settings" else read_manifest(document)
    )
    again = load_entry(type(found), sample["stored"])
    assert dump_entry(again) == sample["stored"]
    assert again == found
    assert dump_entry(found) == dump_entry(again)
