"""Any input is a value or a described problem; whatever was read is written and read back equal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.compiled.codec import OperatorSettings, dump_entry, dump_spec, load_entry, load_spec
from holdfast.dialects.armada.categories import read_error_categories
from holdfast.dialects.armada.policy import BARE, FLAT, NESTED, read_bare_policy
from holdfast.dialects.documents import read_documents
from holdfast.dialects.manifests import read_manifest
from holdfast.dialects.native.catalogue import read_settings, write_queue, write_settings
from holdfast.dialects.native.category import write_category
from holdfast.dialects.native.policy import read_policy
from holdfast.dialects.native.writing import write_job, write_policy
from holdfast.domain.access.grants import Access, Right, Sight
from holdfast.domain.category import FailureCategory
from holdfast.domain.job import Queue
from holdfast.domain.policy.model import BuiltIn, RetryPolicy
from holdfast.domain.sessions.policy import BackoffStrategy, RetryEligibleCause
from holdfast.domain.terms.entries import ENTRIES
from holdfast.errors import InvalidRequest, Problem
from tests.reading import read_job_mapping, read_manifests

if TYPE_CHECKING:
    from collections.abc import Callable

FIELDS = [
    "apiVersion", "kind", "metadata", "spec", "name", "labels", "command", "shell", "env", "resources", "cpu", "memory",
    "gang", "ports", "retry", "rules", "action", "onExitCodes", "operator", "values", "onConditions", "pattern",
    "factor",
    "onTerminationMessage", "backoff", "initialDelay", "maxDelay", "mutate", "static", "onSignals", "onCategory",
    "antiAffinity", "mode", "retryLimit", "weight", "maxRunning", "precedence", "onPodEvents", "regexp", "type",
    "deadline",
    "access", "admin", "othersSee", "permissions", "subjects", "verbs",
    "categories", "defaultAction", "onCauses", "ranShorterThan", "retryPolicies", "onSubcategory", "containerName",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["Retry", "In", "OOMKilled", "1Gi", "30s", "holdfast.dev/v1", "Job", "RetryPolicy", "[", "node", "a"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(FIELDS), st.text(max_size=4)), inner, max_size=6),
    ),
    max_leaves=25,
)
MAPPINGS = st.dictionaries(st.one_of(st.sampled_from(FIELDS), st.text(max_size=4)), VALUES, max_size=8)

names = st.from_regex(r"\A[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?\Z")
durations = st.one_of(st.integers(1, 10**6), st.floats(0.001, 10**6), st.sampled_from(["250ms", "1h30m", "2d", "1.5s"]))
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
patterns = st.sampled_from(["cuda.*error", "(?i)nccl", "^x$", "a|b", r"\bOOM\b"])
limits = st.integers(0, 1000)
exit_codes = st.fixed_dictionaries(
    {"operator": st.sampled_from(["In", "NotIn"]), "values": st.lists(st.integers(0, 255), min_size=1, max_size=5)}
)
backoffs = st.fixed_dictionaries(
    {"initialDelay": st.integers(0, 60), "maxDelay": st.integers(60, 600), "multiplier": st.floats(1, 10)},
    optional={"jitter": st.sampled_from(["none", "deterministic", "random"]), "jitterRatio": st.floats(0, 1)},
)
modes = st.fixed_dictionaries({"mode": st.sampled_from(["none", "node"])})
growths = st.one_of(
    st.fixed_dictionaries({"factor": st.floats(1.01, 10)}, optional={"max": st.integers(1, 2**40)}),
    st.fixed_dictionaries({"static": st.integers(1, 2**40)}),
)
mutations = st.fixed_dictionaries(
    {},
    optional={
        "resources": st.fixed_dictionaries({"memory": growths}),
        "affinity": st.fixed_dictionaries({"avoidSameNode": st.booleans()}),
    },
)
rules = st.fixed_dictionaries(
    {"action": st.sampled_from(["Retry", "Fail", "Ignore", "Hold"])},
    optional={
        "onExitCodes": exit_codes,
        "onConditions": st.lists(st.sampled_from(["OOMKilled", "Evicted", "AppError"]), min_size=1),
        "onTerminationMessage": st.fixed_dictionaries({"pattern": patterns}),
        "onCategory": st.one_of(names, st.lists(names, min_size=1, max_size=3)),
        "onSubcategory": names,
        "onCauses": st.lists(st.sampled_from(["unknown", "agent_transient"]), min_size=1),
        "onSignals": st.lists(
            st.one_of(st.integers(1, 64), st.sampled_from(["SIGTERM", "kill"])), min_size=1, max_size=4
        ),
        "containerName": names,
        "includeInitContainers": st.booleans(),
        "ranShorterThan": durations,
        "retryLimit": limits,
        "backoff": backoffs,
        "antiAffinity": modes,
        "mutate": mutations,
    },
)
policies = st.fixed_dictionaries(
    {},
    optional={
        "retryLimit": limits,
        "defaultAction": st.sampled_from(["Retry", "Fail", "Hold", "Ignore"]),
        "backoff": backoffs,
        "antiAffinity": modes,
        "onUnknownEnd": st.sampled_from(["Retry", "Hold", "Fail"]),
        "rules": st.lists(rules, max_size=4),
    },
)
jobs = st.fixed_dictionaries(
    {"command": st.lists(texts, min_size=1, max_size=4)},
    optional={
        "name": names,
        "labels": st.dictionaries(names, names, max_size=3),
        "annotations": st.dictionaries(texts, texts, max_size=3),
        "queue": names,
        "priority": st.integers(-1000, 1000),
        "env": st.dictionaries(st.from_regex(r"\A[A-Z]{1,6}\Z"), texts, max_size=3),
        "resources": st.fixed_dictionaries(
            {}, optional={"cpu": st.integers(0, 9999).map("{}m".format), "memory": limits, "gpu": limits}
        ),
        "gang": st.integers(1, 1000),
        "ports": st.lists(st.sampled_from(["http", "grpc", "nccl"]), unique=True),
        "deadline": durations,
        "totalDeadline": durations,
        "schedulingTimeout": durations,
        "grace": durations,
        "stall": st.fixed_dictionaries({"noOutput": st.integers(1, 9999)}, optional={"noProgress": st.just("1h")}),
        "checkpointedExitCode": st.integers(1, 255),
        "inputs": st.lists(
            st.one_of(
                st.fixed_dictionaries({"path": st.just("data/x.json"), "text": st.text("ab\u00e9\n", min_size=1)}),
                st.just({"blob": "0" * 64, "unpack": True}),
            ),
            max_size=2,
        ),
        "prepare": st.fixed_dictionaries({"command": st.just(["make", "ready"])}, optional={"timeout": st.just("5m")}),
        "onUnknownEnd": st.sampled_from(["Retry", "Hold", "Fail"]),
        "workingDir": st.just("/srv"),
        "retryPolicies": st.lists(names, max_size=3),
        "retry": policies,
    },
).filter(lambda job: not (job.get("inputs") and "workingDir" in job))
subjects = st.lists(st.sampled_from(["user:ann", "user:oidc:ann@example.org", "group:ops", "user:3"]), max_size=3)
permissions = st.fixed_dictionaries({"subjects": subjects, "verbs": st.lists(st.sampled_from(Right), max_size=4)})
session_retries = st.fixed_dictionaries(
    {},
    optional={
        "max_retries": limits,
        "retry_delay": st.floats(0.001, 1e6),
        "backoff": st.sampled_from(BackoffStrategy),
        "max_retry_delay": st.none() | st.floats(0.001, 1e6),
        "eligible_causes": st.lists(st.sampled_from(RetryEligibleCause)),
        "emit_retry_events": st.booleans(),
    },
)
queues = st.fixed_dictionaries(
    {},
    optional={
        "weight": st.floats(0.001, 1000),
        "maxRunning": st.fixed_dictionaries({}, optional={"cpu": limits, "memory": limits, "gpu": limits}),
        "maxRunningJobs": st.integers(1, 1000),
        "retryPolicies": st.lists(names, max_size=3),
        "paused": st.booleans(),
        "permissions": st.lists(permissions, max_size=3),
        "domain": names,
        "sessionRetry": session_retries,
    },
)
category_rules = st.fixed_dictionaries(
    {"onLog": st.fixed_dictionaries({"pattern": patterns})},
    optional={
        "onExitCodes": exit_codes,
        "onConditions": st.just(["OOMKilled"]),
        "onPodEvents": st.fixed_dictionaries({"regexp": patterns, "type": st.sampled_from(["Normal", "Warning"])}),
        "containerName": names,
        "subcategory": names,
        "hint": texts,
    },
)
categories = st.fixed_dictionaries(
    {"rules": st.lists(category_rules, min_size=1, max_size=3)},
    optional={"precedence": st.integers(-100, 100), "hint": texts, "podAction": st.sampled_from(["Retain", "Delete"])},
)


def problems_of(read: Callable[[Any], object], value: object) -> tuple[Problem, ...] | None:
    """Return the problems of an input, or ``None`` when it was read."""
    try:
        read(value)
    except InvalidRequest as error:
        return error.problems
    return None


@given(st.one_of(st.text(), st.binary().map(lambda raw: raw.decode("utf-8", "replace"))))
@settings(max_examples=300, deadline=None)
def test_any_text_is_documents_or_problems(text: str) -> None:
    found = problems_of(read_manifests, text)
    assert found is None or (found and all(problem.message for problem in found))


@given(MAPPINGS)
@settings(max_examples=200, deadline=None)
def test_any_mapping_is_a_manifest_or_problems(value: dict[str, Any]) -> None:
    version = {"apiVersion": "holdfast.dev/v1"}
    shapes: list[dict[str, Any]] = [value, {**version, "kind": value.get("kind"), "spec": value}]
    for kind in ("Job", *(info.manifest for info in ENTRIES.values())):
        shapes += [
            {**version, "kind": kind, "metadata": metadata, "spec": value} for metadata in (value, {"name": "x"})
        ]
    for shape in shapes:
        found = problems_of(read_manifest, shape)
        assert found is None or found


@given(MAPPINGS)
@settings(max_examples=200, deadline=None)
def test_any_mapping_is_an_armada_policy_or_problems(value: dict[str, Any]) -> None:
    for form in (BARE, FLAT, NESTED):
        problems: list[Problem] = []
        policy = read_bare_policy(value, path="", problems=problems, form=form)
        assert (policy is None) == bool(problems)
    problems = []
    assert (read_error_categories(value, problems=problems) is None) == bool(problems)


@given(MAPPINGS)
@settings(max_examples=100, deadline=None)
def test_any_mapping_is_settings_or_problems(value: dict[str, Any]) -> None:
    found = problems_of(read_settings, value)
    assert found is None or found


@given(jobs)
@settings(deadline=None)
def test_a_job_survives_the_codec_and_is_shown_as_a_manifest(value: dict[str, Any]) -> None:
    spec = read_job_mapping(value)
    text = dump_spec(spec)
    assert load_spec(text) == spec
    assert dump_spec(load_spec(text)) == text
    assert read_job_mapping(json.loads(json.dumps(write_job(spec)))) == spec
    assert load_spec(text) is load_spec(text)


class Careful(yaml.SafeDumper):
    """Quotes text that looks like a number, of which versions of YAML make different things (``08``)."""


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if text and text[0] in "+-.0123456789" else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Careful.add_representer(str, _quoted)


@given(jobs)
@example({"command": ["x"], "labels": {"08": "09"}})
@settings(deadline=None)
def test_yaml_and_json_say_the_same(value: dict[str, Any]) -> None:
    from_json = read_documents(json.dumps(value))[0].value
    from_yaml = read_documents(yaml.dump(value, Dumper=Careful))[0].value
    assert from_json == from_yaml == value


@given(policies)
@settings(deadline=None)
def test_a_policy_comes_back_as_it_was_written_and_stored(value: dict[str, Any]) -> None:
    problems: list[Problem] = []
    policy = read_policy(value, path="", name="p", problems=problems)
    assert problems == []
    assert policy is not None
    assert read_policy(write_policy(policy), path="", name="p", problems=problems) == policy
    assert load_entry(RetryPolicy, dump_entry(policy)) == policy


@given(queues)
@settings(deadline=None)
def test_a_queue_comes_back_as_it_was_written_and_stored(value: dict[str, Any]) -> None:
    envelope = {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "q"}}
    queue = read_manifest({**envelope, "spec": value})
    assert isinstance(queue, Queue)
    assert read_manifest({**envelope, "spec": write_queue(queue)}) == queue
    assert load_entry(Queue, dump_entry(queue)) == queue


@given(categories)
@settings(deadline=None)
def test_a_failure_category_comes_back_as_it_was_written_and_stored(value: dict[str, Any]) -> None:
    envelope = {"apiVersion": "holdfast.dev/v1", "kind": "FailureCategory", "metadata": {"name": "c"}}
    category = read_manifest({**envelope, "spec": value})
    assert isinstance(category, FailureCategory)
    assert read_manifest({**envelope, "spec": write_category(category)}) == category
    assert load_entry(FailureCategory, dump_entry(category)) == category


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "globalMaxRetries": limits,
            "defaultBackoff": backoffs,
            "defaultPolicyName": names,
            "retryShare": st.floats(0, 1),
            "builtinPolicy": st.sampled_from(BuiltIn),
            "fluster": st.fixed_dictionaries(
                {},
                optional={
                    "defaultMaxRetriesFailure": st.integers(0, 9),
                    "defaultMaxRetriesPreemption": st.integers(0, 9),
                    "defaultRetryDelay": st.sampled_from(["0s", "250ms", 1.5, 1.001, "1m", "1d"]),
                },
            ),
            "sessionRetryDefault": session_retries,
            "sessionRetries": st.booleans(),
            "access": st.dictionaries(st.sampled_from(["admin", "operator", "user", "viewer"]), subjects),
            "othersSee": st.sampled_from(Sight),
        },
    )
)
@settings(deadline=None)
def test_settings_come_back_as_they_were_written_and_stored(value: dict[str, Any]) -> None:
    read = read_settings(value)
    assert read_settings(write_settings(*read)) == (*read[:2], read[2].over(Access((), Sight.DETAILS)))
    stored = OperatorSettings(*read)
    assert load_entry(OperatorSettings, dump_entry(stored)) == stored
