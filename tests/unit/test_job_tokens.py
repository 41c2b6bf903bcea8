"""What the token of a job is for: what is below the job, a look at itself, and nothing else."""

from __future__ import annotations

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.access.grants import Right
from holdfast.domain.access.people import Limit, Scope
from holdfast.domain.access.places import WorkScope
from holdfast.domain.access.tokens import job_token_limit
from holdfast.domain.audit import Subject
from holdfast.domain.record import evolve
from holdfast.domain.rights import TABLE, WORK, Grants, Thing, decide, hands_on, refusal_of, submission_refusal
from holdfast.service.access.tokens import RunTokens

ANN = Principal("ann", uid=1001, roles=(Role.USER,))
OWN = evolve(ANN, limit=job_token_limit("j1", "a", submits=True))
BELOW = {Right.SUBMIT, Right.WATCH, Right.LOGS, Right.CANCEL}


def thing(group: str, key: str = "other", owner: str = "ann") -> Thing:
    return Thing(Subject.JOB, "default", owner, 1001, group, key)


def allowed(of: Thing, who: Principal = OWN) -> set[Right]:
    return {right for right in Right if decide(who, right, of, Grants()) is None}


@pytest.mark.parametrize("group", ["a", "a/b", "a/b/c"])
def test_below_its_job_it_submits_reads_and_cancels(group: str) -> None:
    assert allowed(thing(group)) == BELOW
    assert submission_refusal(OWN, evolve(thing(group), id=""), ()) is None


@pytest.mark.parametrize("group", ["", "ab", "A", "b/a", "/a", "a b", "aa/b"])
def test_beside_its_job_it_does_nothing(group: str) -> None:
    assert allowed(thing(group)) == set()
    told = submission_refusal(OWN, evolve(thing(group), id=""), ())
    assert told is not None
    assert told.hint == "put it in group a or below; or use another token, or none"


def test_its_own_job_it_reads_and_does_not_steer_wherever_that_is() -> None:
    assert allowed(thing("", "j1")) == {Right.WATCH, Right.LOGS}
    assert allowed(thing("a", "j1")) == {Right.WATCH, Right.LOGS}, "Iris' jobs are in the group of those below them"


def test_what_is_below_it_and_another_s_stays_the_other_s() -> None:
    assert Right.CANCEL not in allowed(thing("a", owner="ben"))
    assert Right.LOGS not in allowed(thing("a", owner="ben"))


def test_of_other_kinds_it_may_nothing() -> None:
    for kind in TABLE:
        refused = {right for right in TABLE[kind] if refusal_of(OWN, right, kind) is not None}
        assert refused == (set(TABLE[kind]) - BELOW if kind in WORK else set(TABLE[kind])), kind


def test_a_job_that_is_being_cancelled_submits_nothing_more() -> None:
    ending = evolve(ANN, limit=job_token_limit("j1", "a", submits=False))
    assert allowed(thing("a"), ending) == BELOW - {Right.SUBMIT}


def test_a_name_that_ends_with_a_slash_is_not_the_one_without() -> None:
    own = evolve(ANN, limit=job_token_limit("j1", "a/", submits=True))
    assert allowed(thing("a"), own) == allowed(thing("a/b"), own) == set()
    assert allowed(thing("a/"), own) == allowed(thing("a//b"), own) == BELOW


@pytest.mark.parametrize(
    ("scopes", "group", "may"),
    [
        ((), "a", True),
        ((Scope((), "job"),), "a", True),
        ((Scope(("submit", "watch", "logs", "cancel"), "job", WorkScope(group="a/")),), "a/b", True),
        ((Scope((), "job", WorkScope(group="a/")),), "ab", False),
        ((Scope((), "job", WorkScope(group="a")),), "a", False),
        ((Scope((), "job", WorkScope(queue="gpu")),), "a", False),
        ((Scope((), "job", WorkScope(job="a")),), "a", False),
        ((Scope(("submit", "watch", "cancel"), "job"),), "a", False),
        ((Scope(("submit",), "job"), Scope(("watch", "logs", "cancel"), "", WorkScope(group="a/"))), "a", True),
    ],
)
def test_what_is_submitted_has_a_token_of_its_own_where_its_submitter_s_is_for_as_much(
    scopes: tuple[Scope, ...], group: str, *, may: bool
) -> None:
    assert hands_on(evolve(ANN, limit=Limit(Role.USER, scopes)), group) is may
    assert hands_on(ANN, group)


def test_a_run_s_token_is_the_same_whenever_it_is_made_and_no_other_run_s() -> None:
    one, other = RunTokens(b"k" * 43), RunTokens(b"l" * 43)
    assert one.token("j-1-0-1") == RunTokens(b"k" * 43).token("j-1-0-1")
    made = {tokens.token(uid) for tokens in (one, other) for uid in ("j-1-0-1", "j-1-0-2", "j-2-0-1")}
    assert len(made) == 6
    assert all(token.startswith("hfj_j-") for token in made)
    assert one.token("j-1-0-1").rpartition("_")[2] not in one.digest("j-1-0-1")
