"""What every store promises operators who edit the catalogue."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal
from holdfast.domain.audit import Act, Caller, Subject
from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.events.operators import (
    NodeCordoned,
    NodeUncordoned,
    OperatorActed,
    SchedulingPaused,
    SchedulingResumed,
)
from holdfast.domain.job import Ceiling, Job, JobState, Queue, Resources
from holdfast.domain.placement.cordon import Cordon, Pause
from holdfast.domain.policy.model import Action, Backoff, ExitCodeOperator, ExitCodes, RetryPolicy, RetrySettings, Rule
from holdfast.domain.record import evolve
from holdfast.domain.terms.entries import ENTRIES, EntryInfo
from holdfast.domain.terms.projects import Domain, Image, KeyPair, ResourceGroup
from holdfast.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, VersionConflict
from holdfast.ports.entries import CATEGORY, DOMAIN, KEYPAIR, POLICY, QUEUE, Entry, kind_of, kind_of_entry
from holdfast.ports.store import Changes, Submission

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports.store import Store
    from tests.contract.conftest import Place

INFRA = RetryPolicy("infra", (Rule(Action.RETRY, "any", retry_limit=3),), retry_limit=5)
OOM = FailureCategory("oom", (CategoryRule(conditions=frozenset({"OOMKilled"}), hint="ask for more"),), precedence=1)


def job(job_id: str, name: str = "a", **given: object) -> Job:
    made = Job(job_id, name, "default", 0, 100.0, "{}", Resources(500, 1 << 30, 1), queued_at=100.0, updated_at=100.0)
    return evolve(made, **given)  # type: ignore[arg-type] # fields by name


def test_an_empty_catalogue_has_the_default_queue_and_settings(store: Store) -> None:
    catalogue = store.catalogue()
    assert dict(catalogue.queues) == {"default": Queue("default")}
    assert (dict(catalogue.policies), list(catalogue.categories)) == ({}, [])
    assert (catalogue.settings, catalogue.default_policy) == (RetrySettings(), None)
    assert catalogue.version == store.catalogue_version()


def test_a_policy_gets_a_revision_for_every_content_it_ever_had(store: Store) -> None:
    assert store.put_entry(evolve(INFRA, revision=77), create=True).revision == 1
    assert store.put_entry(INFRA).revision == 1
    changed = store.put_entry(evolve(INFRA, retry_limit=9), create=False)
    assert changed == evolve(INFRA, retry_limit=9, revision=2)
    assert store.catalogue().policies["infra"] == changed
    assert store.policy_revision("infra", 1) == INFRA
    assert store.policy_revision("infra", 2) == changed


def test_a_deleted_policys_revisions_stay_and_a_new_one_counts_on(store: Store) -> None:
    store.put_entry(INFRA)
    store.delete_entry(POLICY, "infra")
    assert dict(store.catalogue().policies) == {}
    assert store.policy_revision("infra", 1) == INFRA
    assert store.put_entry(INFRA, create=True).revision == 2


@pytest.mark.parametrize(("name", "revision"), [("infra", 0), ("infra", 2), ("infra", -1), ("other", 1)])
def test_a_revision_that_never_was_is_not_found(store: Store, name: str, revision: int) -> None:
    store.put_entry(INFRA)
    with pytest.raises(NotFound):
        store.policy_revision(name, revision)


def test_a_rich_policy_is_kept_whole(store: Store) -> None:
    codes = ExitCodes(ExitCodeOperator.NOT_IN, frozenset({1, 2}))
    rule = Rule(Action.HOLD, "odd", codes, frozenset({"AppError"}), "bad|worse", backoff=Backoff(1.5, 60.0, 3.0))
    stored = store.put_entry(RetryPolicy("rich", (rule, Rule(Action.FAIL, "rest")), default_action=Action.RETRY))
    assert stored.rules[0] == rule
    assert store.catalogue().policies["rich"] == store.policy_revision("rich", 1) == stored


def test_a_policy_in_use_is_not_deleted_and_its_users_are_named(store: Store) -> None:
    store.put_entry(INFRA)
    for name in ("gpu", "cpu"):
        store.put_entry(Queue(name, retry_policies=("infra",)))
    store.put_settings(RetrySettings(), "infra")
    with pytest.raises(Conflict, match=r"'gpu'.*settings|settings.*'gpu'") as raised:
        store.delete_entry(POLICY, "infra")
    assert "'cpu'" in str(raised.value)
    assert "infra" in store.catalogue().policies


def test_a_queue_is_kept_whole_and_replaced(store: Store) -> None:
    store.put_entry(INFRA)
    queue = Queue("gpu", 2.5, Ceiling(4000, 8 << 30, 2), 7, ("infra",), paused=True)
    store.put_entry(queue, create=True)
    assert store.catalogue().queues["gpu"] == queue
    store.put_entry(Queue("gpu"), create=False)
    assert store.catalogue().queues["gpu"] == Queue("gpu")


def test_edits_of_a_queue_at_the_same_time_do_not_undo_each_other(store: Store) -> None:
    def heavier(queue: Queue | None) -> Queue:
        found = queue or Queue("gpu")
        return evolve(found, weight=found.weight + 1.0)

    with ThreadPoolExecutor(4) as threads:
        edited = list(threads.map(lambda _: store.edit_entry(QUEUE, "gpu", heavier), range(20)))
    assert sorted(queue.weight for queue in edited) == [float(weight) for weight in range(2, 22)]
    assert store.catalogue().queues["gpu"].weight == 21.0


def test_an_edit_that_is_refused_changes_nothing(store: Store) -> None:
    with pytest.raises(NotFound):
        store.edit_entry(QUEUE, "gpu", lambda _: Queue("gpu"), create=False)
    with pytest.raises(InvalidRequest):
        store.edit_entry(QUEUE, "gpu", lambda _: Queue("gpu", retry_policies=("x",)))
    assert set(store.catalogue().queues) == {"default"}


def test_a_queue_may_name_only_policies_that_exist(store: Store) -> None:
    store.put_entry(INFRA)
    with pytest.raises(InvalidRequest) as raised:
        store.put_entry(Queue("gpu", retry_policies=("infra", "x", "y")))
    assert [problem.path for problem in raised.value.problems] == ["retryPolicies[1]", "retryPolicies[2]"]
    assert raised.value.problems[0].allowed == ("infra",)
    assert set(store.catalogue().queues) == {"default"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Queue("default"), Queue("default", weight=3.0)),
        (Domain("default"), Domain("default", "everybody")),
        (ResourceGroup("default"), ResourceGroup("default", node_selector={"gpu": "a100"})),
        (Image("default", "local/process:latest"), Image("default", "python:3.11", env={"A": "b"}, command=("nice",))),
    ],
)
def test_what_always_exists_is_changed_but_never_made_or_deleted(store: Store, before: Entry, after: Entry) -> None:
    kind = kind_of_entry(before)
    assert dict(store.catalogue().of(kind)) == {"default": before}
    with pytest.raises(AlreadyExists):
        store.put_entry(before, create=True)
    store.put_entry(after, create=False)
    with pytest.raises(Conflict, match="cannot be deleted"):
        store.delete_entry(kind, "default")
    assert dict(store.catalogue().of(kind)) == {"default": after}


def test_a_queue_belongs_to_a_domain_that_exists_and_stays_while_it_does(store: Store) -> None:
    with pytest.raises(InvalidRequest) as raised:
        store.put_entry(Queue("gpu", domain="lab"))
    assert [(problem.path, problem.allowed) for problem in raised.value.problems] == [("domain", ("default",))]
    lab = Domain("lab", "a laboratory", active=False, session_retry={"max_retries": 2, "max_retry_delay": None})
    queue = Queue("gpu", domain="lab", session_retry={"eligible_causes": ["unknown"], "max_retry_delay": None})
    store.put_entry(lab)
    store.put_entry(queue)
    assert (store.catalogue().of(DOMAIN)["lab"], store.catalogue().queues["gpu"]) == (lab, queue)
    with pytest.raises(Conflict, match="'lab' is used by queue 'gpu'"):
        store.delete_entry(DOMAIN, "lab")
    store.put_entry(Queue("gpu"))
    store.delete_entry(DOMAIN, "lab")
    assert set(store.catalogue().of(DOMAIN)) == {"default"}


def test_a_keypair_keeps_the_time_at_which_it_was_created(store: Store) -> None:
    first, later = (Caller(Principal("ann"), at) for at in (5.0, 7.0))
    keypair = KeyPair("AKIAIOSFODNN7EXAMPLE", "ann")
    store.put_entry(keypair, caller=first)
    version = store.catalogue_version()
    assert store.put_entry(keypair, caller=later).created_at == 5.0
    assert store.catalogue_version() == version
    changed = store.put_entry(evolve(keypair, active=False), caller=later)
    assert (
        store.catalogue().of(KEYPAIR)
        == {keypair.name: changed}
        == {keypair.name: evolve(keypair, active=False, created_at=5.0)}
    )


def test_a_queue_is_deleted_once_its_jobs_have_ended(store: Store) -> None:
    store.put_entry(Queue("gpu"))
    store.submit(Submission([job("j1", queue="gpu"), job("j2", queue="default")]))
    with pytest.raises(Conflict):
        store.delete_entry(QUEUE, "gpu")
    store.commit(Changes({"j1": evolve(store.job("j1"), state=JobState.CANCELLED)}))
    store.delete_entry(QUEUE, "gpu")
    assert set(store.catalogue().queues) == {"default"}


def test_categories_are_tried_by_precedence_then_name(store: Store) -> None:
    for name, precedence in (("z", 0), ("b", 1), ("a", 1)):
        store.put_entry(evolve(OOM, name=name, precedence=precedence))
    assert [each.name for each in store.catalogue().categories] == ["z", "a", "b"]
    store.delete_entry(CATEGORY, "a")
    assert [each.name for each in store.catalogue().categories] == ["z", "b"]


def test_a_category_is_kept_whole_and_replaced(store: Store) -> None:
    store.put_entry(OOM, create=True)
    assert store.catalogue().categories == [OOM]
    store.put_entry(evolve(OOM, hint="more"), create=False)
    assert store.catalogue().categories == [evolve(OOM, hint="more")]


def test_settings_are_kept_and_replaced(store: Store) -> None:
    store.put_entry(INFRA)
    settings = RetrySettings(0, Backoff(2.0, 90.0, 1.5))
    store.put_settings(settings, "infra")
    assert (store.catalogue().settings, store.catalogue().default_policy) == (settings, "infra")
    store.put_settings(RetrySettings(), None)
    assert (store.catalogue().settings, store.catalogue().default_policy) == (RetrySettings(), None)


def test_the_default_policy_must_exist(store: Store) -> None:
    with pytest.raises(InvalidRequest, match="default"):
        store.put_settings(RetrySettings(7), "nowhere")
    assert store.catalogue().settings == RetrySettings()


def test_a_policy_is_changed_and_deleted_only_at_a_revision_its_editor_knows(store: Store) -> None:
    store.put_entry(INFRA, if_match={"7"})
    changed = evolve(INFRA, retry_limit=9)
    calls: list[Callable[[], object]] = [
        lambda: store.put_entry(changed, if_match={"2"}),
        lambda: store.put_entry(INFRA, if_match=()),
        lambda: store.delete_entry(POLICY, "infra", if_match={"0", "x"}),
    ]
    for refused in calls:
        with pytest.raises(VersionConflict) as caught:
            refused()
        assert caught.value.current == "1"
    assert store.put_entry(changed, if_match={"2", "1"}).revision == 2
    store.delete_entry(POLICY, "infra", if_match={"2"})
    assert store.put_entry(changed).revision == 3


@pytest.mark.parametrize(
    "put",
    [
        lambda store, create: store.put_entry(INFRA, create=create),
        lambda store, create: store.put_entry(Queue("gpu"), create=create),
        lambda store, create: store.put_entry(OOM, create=create),
    ],
)
def test_create_says_whether_the_name_must_be_new(store: Store, put: Callable[[Store, bool | None], object]) -> None:
    with pytest.raises(NotFound):
        put(store, False)  # noqa: FBT003 - the port's own word is a keyword where it is called
    put(store, True)  # noqa: FBT003 - as above
    with pytest.raises(AlreadyExists):
        put(store, True)  # noqa: FBT003 - as above
    put(store, False)  # noqa: FBT003 - as above
    put(store, None)


@pytest.mark.parametrize("info", ENTRIES.values(), ids=lambda info: info.noun)
def test_deleting_what_is_not_there_is_not_found(store: Store, info: EntryInfo) -> None:
    with pytest.raises(NotFound, match="'nowhere'"):
        store.delete_entry(kind_of(info), "nowhere")


EDITS: tuple[Callable[[Store], object], ...] = (
    lambda store: store.put_entry(INFRA),
    lambda store: store.put_entry(evolve(INFRA, retry_limit=1)),
    lambda store: store.put_entry(Queue("gpu", retry_policies=("infra",))),
    lambda store: store.put_entry(Queue("gpu")),
    lambda store: store.put_entry(OOM),
    lambda store: store.put_settings(RetrySettings(1), "infra"),
    lambda store: store.put_settings(RetrySettings(1), None),
    lambda store: store.delete_entry(CATEGORY, "oom"),
    lambda store: store.delete_entry(POLICY, "infra"),
    lambda store: store.delete_entry(QUEUE, "gpu"),
)


def test_a_cordon_is_kept_until_it_is_lifted_and_told_in_the_events_and_the_audit_log(store: Store) -> None:
    by, version = Caller(Principal("ann"), 7.0), store.catalogue_version()
    store.put_cordon(Cordon("n1", 5.0), caller=by)
    store.put_cordon(Cordon("n1", 6.0, drain=True, reason="a new kernel"), caller=by)
    store.put_cordon(Cordon("n1", 6.0, drain=True, reason="a new kernel"), caller=by)
    assert store.catalogue().cordons == {"n1": Cordon("n1", 6.0, drain=True, reason="a new kernel")}
    store.delete_cordon("n1", caller=by)
    store.delete_cordon("n1", caller=by)
    assert store.catalogue().cordons == {}
    assert store.catalogue_version() == version + 3
    told = [stored.event for stored in store.events(limit=20) if not isinstance(stored.event, OperatorActed)]
    assert told == [NodeCordoned("n1"), NodeCordoned("n1", drain=True, reason="a new kernel"), NodeUncordoned("n1")]
    assert [stored.entry.act for stored in store.audit(limit=9)] == [Act.CORDON, Act.DRAIN, Act.UNCORDON]


def test_a_pause_is_kept_until_it_is_lifted_and_told_in_the_events_and_the_audit_log(store: Store) -> None:
    by, version = Caller(Principal("ann"), 7.0), store.catalogue_version()
    assert (store.paused(), store.catalogue().paused) == (None, None)
    store.put_pause(Pause(5.0, "restored"), caller=by)
    store.put_settings(RetrySettings(1), None)
    assert store.paused() == store.catalogue().paused == Pause(5.0, "restored")
    assert [store.delete_pause(caller=by), store.delete_pause(caller=by)] == [True, False]
    assert store.catalogue().paused is None
    assert store.catalogue_version() == version + 3
    told = [stored.event for stored in store.events(limit=20) if not isinstance(stored.event, OperatorActed)]
    assert told == [SchedulingPaused("restored"), SchedulingResumed()]
    acts = [(entry.act, entry.subject, entry.detail) for _, entry in store.audit(limit=9)]
    assert acts == [(Act.PAUSE, Subject.SCHEDULING, "restored"), (Act.RESUME, Subject.SCHEDULING, "")]


def test_the_version_moves_with_every_edit_that_changes_something(store: Store) -> None:
    versions = [store.catalogue_version()]
    for edit in EDITS:
        edit(store)
        versions.append(store.catalogue_version())
    assert versions == sorted(set(versions))
    store.put_entry(Queue("default"))
    store.put_settings(RetrySettings(1), None)
    with pytest.raises(NotFound):
        store.delete_entry(POLICY, "infra")
    assert store.catalogue_version() == versions[-1] == store.catalogue().version


@pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
def test_a_stored_pattern_that_is_not_re2_is_named_and_another_entry_stands_in_for_its_own(
    place: Place,
) -> None:
    store = place.open()
    store.put_entry(RetryPolicy("broken", (Rule(Action.RETRY, "any", termination_message="("),)))
    store.put_entry(FailureCategory("cuda", (CategoryRule(log="*"),)))
    store.put_entry(INFRA)
    store.put_entry(OOM)
    found = store.catalogue()
    assert sorted(found.unreadable) == ["failure category cuda", "retry policy broken"]
    assert all("is not RE2" in why for why in found.unreadable.values())
    assert [rule.action for rule in found.policies["broken"].rules] == [Action.HOLD]
    assert {category.name: category.rules for category in found.categories} == {"cuda": (), "oom": OOM.rules}
    assert found.policies["infra"] == INFRA
