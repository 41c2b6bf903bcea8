"""Editing the catalogue: what is named must exist, and a wrong name is answered with the right one."""

from __future__ import annotations

import pytest

from holdfast.dialects.native.resources import OFFERED
from holdfast.domain.access import Principal, Role
from holdfast.domain.access.grants import AS_BEFORE
from holdfast.domain.audit import Caller
from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.containers import Capability, EngineInfo
from holdfast.domain.file_settings import FileRetries, FileSettings
from holdfast.domain.job import Ceiling, Node, Queue, Resources
from holdfast.domain.policy.model import Action, Backoff, RetryPolicy, RetrySettings, Rule
from holdfast.errors import AlreadyExists, Conflict, InvalidManifest, InvalidSetting, NotFound
from holdfast.service.operations.catalogue import Categories, Policies, Queues
from holdfast.service.operations.settings import SettingsOperations
from tools.memory_store import MemoryStore

BY = Caller(Principal("me", roles=(Role.ADMIN,)), 0.0)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_changed_policy_is_a_new_revision_and_an_equal_one_is_not(store: MemoryStore) -> None:
    policies = Policies(store)
    assert policies.put(BY, RetryPolicy("infra"), create=True).revision == 1
    assert policies.put(BY, RetryPolicy("infra")).revision == 1
    assert policies.put(BY, RetryPolicy("infra", default_action=Action.RETRY)).revision == 2
    assert [(policy.name, policy.revision) for policy in policies.list(BY)] == [("infra", 2)]


def test_create_wants_a_new_name_and_update_a_known_one(store: MemoryStore) -> None:
    policies = Policies(store)
    with pytest.raises(NotFound):
        policies.put(BY, RetryPolicy("infra"), create=False)
    policies.put(BY, RetryPolicy("infra"))
    with pytest.raises(AlreadyExists):
        policies.put(BY, RetryPolicy("infra"), create=True)


@pytest.mark.parametrize(("name", "hint"), [("infa", "did you mean infra?"), ("zzz", "existing ones: infra")])
def test_a_wrong_name_is_answered_with_the_right_ones(store: MemoryStore, name: str, hint: str) -> None:
    policies = Policies(store)
    policies.put(BY, RetryPolicy("infra"))
    for ask in (policies.get, policies.delete):
        with pytest.raises(NotFound) as caught:
            ask(BY, name)
        assert caught.value.hint == hint


def test_a_policy_that_a_queue_names_stays(store: MemoryStore) -> None:
    Policies(store).put(BY, RetryPolicy("infra"))
    Queues(store).put(BY, Queue("default", retry_policies=("infra",)))
    with pytest.raises(Conflict, match="default"):
        Policies(store).delete(BY, "infra")


def test_a_queue_names_policies_and_a_domain_that_exist_or_all_that_do_not_are_told(store: MemoryStore) -> None:
    with pytest.raises(InvalidManifest) as caught:
        Queues(store).put(BY, Queue("gpu", retry_policies=("a", "b"), domain="lab"))
    paths = ["spec.retryPolicies[0]", "spec.retryPolicies[1]", "spec.domain"]
    assert [problem.path for problem in caught.value.problems] == paths


def test_queues_are_listed_by_name_and_read_one_by_one(store: MemoryStore) -> None:
    queues = Queues(store)
    queues.put(BY, Queue("b", weight=2.0), create=True)
    queues.put(BY, Queue("a"), create=True)
    assert [queue.name for queue in queues.list(BY)] == ["a", "b", "default"]
    assert queues.get(BY, "b").weight == 2.0
    queues.delete(BY, "b")
    with pytest.raises(NotFound):
        queues.get(BY, "b")


def test_a_limit_on_what_nobody_has_is_dubious_with_the_names_that_were_possible(store: MemoryStore) -> None:
    store.put_settings(RetrySettings(resources=(("token/s3", 5000),)), None)
    queues, here = Queues(store), [Node("m", "local", Resources(named=(("licence/matlab", 1000),)))]
    limits = (("licence/matlab", 500), ("licence/matlb", 1000), ("token/s3", 0), ("tpu", 0))
    queue = queues.put(BY, Queue("few", max_running=Ceiling(named=limits)))
    assert queues.get(BY, "few") == queue, "somebody may have it later"
    slip, strange = Queues(store, lambda: here).warnings(BY, queue)
    assert (slip.path, slip.message) == ("spec.maxRunning.licence/matlb", "no node has any licence/matlb")
    assert (slip.allowed, slip.hint) == (("licence/matlab", "token/s3"), "did you mean licence/matlab?")
    assert (strange.path, strange.hint) == ("spec.maxRunning.tpu", OFFERED)


def test_nothing_is_dubious_while_no_node_has_reported_or_an_engine_has_places_of_its_own(store: MemoryStore) -> None:
    queue = Queue("few", max_running=Ceiling(named=(("tpu", 1000),)))
    assert Queues(store).warnings(BY, queue) == []
    elsewhere = Node("all", "slurm", Resources(), engine=EngineInfo("slurm", frozenset({Capability.PLACEMENT})))
    assert Queues(store, lambda: [elsewhere]).warnings(BY, queue) == []


def test_categories_are_listed_in_order_of_evaluation(store: MemoryStore) -> None:
    categories = Categories(store)
    rule = CategoryRule(log="x")
    categories.put(BY, FailureCategory("late", (rule,), precedence=9))
    categories.put(BY, FailureCategory("early", (rule,), precedence=1))
    assert [category.name for category in categories.list(BY)][:2] == ["early", "late"]
    assert categories.get(BY, "late").precedence == 9
    categories.delete(BY, "late")
    with pytest.raises(NotFound):
        categories.delete(BY, "late")


def test_settings_name_a_default_policy_that_exists(store: MemoryStore) -> None:
    settings = SettingsOperations(store)
    with pytest.raises(InvalidSetting) as caught:
        settings.put(BY, RetrySettings(), "infra", AS_BEFORE)
    assert caught.value.problems[0].path == "defaultPolicyName"
    Policies(store).put(BY, RetryPolicy("infra"))
    settings.put(BY, RetrySettings(global_max_retries=3), "infra", AS_BEFORE)
    assert settings.get(BY) == (RetrySettings(global_max_retries=3), "infra", AS_BEFORE)


def test_a_category_that_does_not_exist_is_warned_of_with_its_place_and_the_right_name(store: MemoryStore) -> None:
    Categories(store).put(BY, FailureCategory("disks", (CategoryRule(log="slow disk", subcategory="slow"),)))
    rules = [
        Rule(Action.RETRY, "a", categories=frozenset({"gpu", "diskss"})),
        Rule(Action.RETRY, "b", categories=frozenset({"disks"}), subcategories=frozenset({"slow", "fast"})),
        Rule(Action.RETRY, "c", categories=frozenset({"none"}), subcategories=frozenset({"any"})),
        Rule(Action.RETRY, "d", categories=frozenset({"internal"}), subcategories=frozenset({"lease-expired"})),
        Rule(Action.RETRY, "e", subcategories=frozenset({"slow", "job-rejected", "slowe"})),
    ]
    warnings = Policies(store).warnings(BY, RetryPolicy("infra", tuple(rules)))
    assert [(one.path, one.message, one.hint) for one in warnings] == [
        ("spec.rules[0].onCategory", "failure category 'diskss' does not exist", "did you mean disks?"),
        ("spec.rules[1].onSubcategory", "subcategory 'fast' does not exist", "create the subcategory first"),
        ("spec.rules[2].onCategory", "failure category 'none' does not exist", "create the failure category first"),
        ("spec.rules[4].onSubcategory", "subcategory 'slowe' does not exist", "did you mean slow?"),
    ]


def test_with_a_default_category_of_a_file_the_built_in_ones_do_not_exist(store: MemoryStore) -> None:
    store.put_configured(FileSettings("armada.yaml", default_category="other", default_subcategory="rest"))
    rules = [
        Rule(Action.RETRY, "a", categories=frozenset({"other"}), subcategories=frozenset({"rest"})),
        Rule(Action.RETRY, "b", categories=frozenset({"gpu"})),
    ]
    [warning] = Policies(store).warnings(BY, RetryPolicy("infra", tuple(rules)))
    assert (warning.path, warning.allowed) == ("spec.rules[1].onCategory", ("internal", "other"))


def test_a_default_policy_that_a_file_names_and_nobody_wrote_is_warned_of(store: MemoryStore) -> None:
    settings = SettingsOperations(store)
    retries = FileRetries(enabled=True, global_max_retries=20, default_backoff=Backoff(), default_policy="stubborn")
    store.put_configured(FileSettings("armada.yaml", retries))
    [warning] = settings.warnings(BY, AS_BEFORE, lambda _: True)
    assert (warning.path, warning.message) == ("defaultPolicyName", "retry policy 'stubborn' does not exist")
    Policies(store).put(BY, RetryPolicy("stubborn"))
    assert settings.warnings(BY, AS_BEFORE, lambda _: True) == []
