"""Who may do what: the table cell by cell, roles, and what an operation says to whom it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.access.grants import NOBODY, Access, Permission, Right, Sight, roles_of
from holdfast.domain.audit import Caller, Subject
from holdfast.domain.job import Queue
from holdfast.domain.record import evolve
from holdfast.domain.rights import (
    TABLE,
    Grants,
    Reach,
    Thing,
    decide,
    reach,
    refusal_of,
    sight_of,
    submission_refusal,
)
from holdfast.errors import Forbidden
from holdfast.service.access.book import FRESH_S, AccessBook
from holdfast.service.operations.catalogue import Policies, Queues
from holdfast.service.operations.settings import SettingsOperations
from tests.unit.conftest import VirtualClock
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from holdfast.domain.terms.kinds import SubjectName

OWNER = Principal("lab", uid=1000)
ROLES = (Role.VIEWER, Role.USER, Role.OPERATOR, Role.ADMIN)
WORK = "own own all all"
MATRIX = {
    "job submit": "no own own all",
    "job watch": WORK,
    "job logs": "own own own all",
    "job cancel": "no own all all",
    "job preempt": "no own all all",
    "job reprioritize": "no own all all",
    "job change": "no own all all",
    "queue watch": "all all all all",
    "queue change": "no no all all",
    "retry-policy watch": "all all all all",
    "retry-policy change": "no no all all",
    "failure-category watch": "all all all all",
    "failure-category change": "no no all all",
    "domain watch": "all all all all",
    "domain change": "no no all all",
    "resource-group watch": "all all all all",
    "resource-group change": "no no all all",
    "image watch": "all all all all",
    "image change": "no no all all",
    "keypair watch": "no no all all",
    "keypair change": "no no no all",
    "node watch": "all all all all",
    "node change": "no no all all",
    "device watch": "all all all all",
    "device change": "no no all all",
    "notifier watch": "no no all all",
    "notifier change": "no no all all",
    "notification watch": "own own all all",
    "notification change": "no no all all",
    "settings watch": "all all all all",
    "settings change": "no no no all",
    "token watch": "own own own all",
    "token change": "own own own all",
    "audit watch": "no no all all",
    "server watch": "all all all all",
}


def test_the_table_says_this() -> None:
    found = {f"{kind} {right}": " ".join(row) for kind, rights in TABLE.items() for right, row in rights.items()}
    alike = {
        f"{kind} {row.partition(' ')[2]}": reaches
        for row, reaches in MATRIX.items()
        for kind in ("array", "job-set")
        if row.startswith("job ")
    }
    assert found == MATRIX | alike


@pytest.mark.parametrize("kind", [kind for name, kind in vars(Subject).items() if name.isupper()])
@pytest.mark.parametrize("right", Right)
def test_each_cell_decides_alone(kind: SubjectName, right: Right) -> None:
    row = TABLE.get(kind, {}).get(right, (Reach.NONE,) * 4)
    for role, how_far in zip(ROLES, row, strict=True):
        ann = Principal("ann", roles=(role,))
        assert reach(ann, right, kind) is how_far
        refused = refusal_of(ann, right, kind)
        assert (refused is None) is (how_far is not Reach.NONE)
        if refused is not None:
            verb = "read the logs of" if right is Right.LOGS else right
            assert f"ann, whose role here is {role}, may not {verb}" in refused.message
            assert "admin can grant it" in refused.hint


def test_of_several_roles_the_one_that_goes_farthest_counts() -> None:
    both = Principal("ann", roles=(Role.VIEWER, Role.OPERATOR))
    assert reach(both, Right.CANCEL, Subject.JOB) is Reach.ALL


HERS = Thing(Subject.JOB, "gpu", "ann", 1002)
GPU = Grants({"gpu": (Permission(("group:ml",), (Right.CANCEL, Right.LOGS)),)})


@pytest.mark.parametrize(
    ("who", "right", "allowed"),
    [
        (Principal("ann", uid=1002), Right.CANCEL, True),
        (Principal("ann"), Right.CANCEL, True),
        (Principal("ann", uid=1009), Right.CANCEL, False),
        (Principal("ben", uid=1003), Right.CANCEL, False),
        (Principal("ben", ("ml",), uid=1003), Right.CANCEL, True),
        (Principal("ben", ("ml",), uid=1003), Right.CHANGE, False),
        (Principal("ben", ("ml",), uid=1003), Right.SUBMIT, False),
    ],
)
def test_users_reach_their_own_by_account_and_what_queues_give(who: Principal, right: Right, *, allowed: bool) -> None:
    assert (decide(evolve(who, roles=(Role.USER,)), right, HERS, GPU) is None) is allowed


@pytest.mark.parametrize("others_see", Sight)
def test_what_others_see_is_what_the_settings_say_and_more_where_a_queue_gives_it(others_see: Sight) -> None:
    ben = Principal("ben", roles=(Role.USER,))
    assert sight_of(ben, HERS, Grants(others_see=others_see)) is others_see
    assert sight_of(Principal("ben"), HERS, Grants(others_see=others_see)) is Sight.NOTHING
    watching = Grants({"gpu": (Permission(("user:ben",), (Right.WATCH,)),)}, others_see)
    assert sight_of(ben, HERS, watching) is max(others_see, Sight.DETAILS, key=list(Sight).index)
    assert sight_of(ben, HERS, evolve(watching, permissions=GPU.permissions)) is others_see
    assert sight_of(evolve(ben, groups=("ml",)), HERS, GPU) is Sight.EVERYTHING
    assert sight_of(Principal("ann", roles=(Role.VIEWER,)), HERS, Grants(others_see=others_see)) is Sight.EVERYTHING


def test_a_queue_with_permissions_is_closed_to_others_and_one_without_open_to_users_only() -> None:
    ml = GPU.permissions["gpu"]
    open_to = (Permission(("user:ben",), (Right.SUBMIT,)),)
    user, viewer = (Principal("ben", ("ml",), roles=(role,)) for role in (Role.USER, Role.VIEWER))
    for who, permissions, allowed in (
        (user, (), True),
        (user, ml, False),
        (user, open_to, True),
        (viewer, (), False),
        (viewer, open_to, False),
        (Principal("lab", roles=(Role.ADMIN,)), ml, True),
        (user, NOBODY, False),
    ):
        assert (submission_refusal(who, Thing(Subject.JOB, "gpu"), permissions) is None) is allowed


def test_who_has_no_role_may_do_nothing() -> None:
    for kind in TABLE:
        for right in Right:
            refused = refusal_of(Principal("bob"), right, kind)
            assert refused is not None
            assert "bob has no role here" in refused.message


@pytest.mark.parametrize(
    ("who", "roles"),
    [
        (Principal("root", uid=0), (Role.ADMIN,)),
        (OWNER, (Role.ADMIN,)),
        (Principal("lab", uid=1001), (Role.USER,)),
        (Principal("lab"), ()),
        (Principal("ann", uid=1002), (Role.OPERATOR,)),
        (Principal("bob", ("guests",), uid=1003), (Role.VIEWER,)),
        (Principal("ann", ("guests",), uid=1002), (Role.OPERATOR, Role.VIEWER)),
        (Principal("eve", ("staff",), uid=1004), (Role.USER,)),
        (Principal("oidc:eve"), ()),
        (Principal("oidc:ann"), (Role.ADMIN,)),
    ],
)
def test_roles_come_from_the_settings_and_for_unix_accounts_from_being_one(
    who: Principal, roles: tuple[Role, ...]
) -> None:
    access = Access(
        (
            (Role.ADMIN, ("user:oidc:ann",)),
            (Role.OPERATOR, ("user:ann", "group:ops")),
            (Role.VIEWER, ("group:guests",)),
        )
    )
    assert roles_of(who, access, owner=OWNER) == roles


def test_what_is_given_or_taken_away_counts_within_a_second() -> None:
    store, clock, ann = MemoryStore(), VirtualClock(), Principal("ann", uid=1002)
    book = AccessBook(store, clock, OWNER)
    assert book.recognized(ann).roles == (Role.USER,)
    admin = Caller(book.recognized(OWNER), 0.0)
    settings, policy, _ = SettingsOperations(store).get(admin)
    SettingsOperations(store).put(admin, settings, policy, Access(((Role.VIEWER, ("user:ann",)),)))
    clock.time += FRESH_S
    assert book.recognized(ann).roles == (Role.VIEWER,)


def test_a_refusal_says_what_is_missing_and_is_in_the_audit_log() -> None:
    store = MemoryStore()
    ann = Caller(Principal("ann", roles=(Role.USER,)), 5.0, "10.0.0.1", "r-1")
    with pytest.raises(Forbidden) as caught:
        Queues(store).put(ann, Queue("mine"))
    assert caught.value.code == "forbidden"
    assert caught.value.message == "ann, whose role here is user, may not change queues: this needs the role operator"
    assert caught.value.hint == "an admin can grant it: holdfast update settings --access operator=user:ann"
    with pytest.raises(Forbidden, match="may not change retry policies"):
        Policies(store).delete(ann, "p")
    entries = [(one.entry.act, one.entry.subject, one.entry.outcome) for one in store.audit(limit=9)]
    assert entries == [("update", "queue", "forbidden"), ("update", "retry-policy", "forbidden")]
    assert "mine" not in store.catalogue().queues
