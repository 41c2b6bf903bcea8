"""What a token's scope says: how it is written, and where it lets its user do what."""

from __future__ import annotations

import pytest

from holdfast.compiled.codec import dump_entry, load_entry
from holdfast.domain.access import Principal, Role
from holdfast.domain.access.grants import Right, Seen, Sight
from holdfast.domain.access.people import ROLES, Limit, Scope
from holdfast.domain.access.places import WorkScope
from holdfast.domain.access.tokens import ApiToken
from holdfast.domain.audit import Subject
from holdfast.domain.job import Queue
from holdfast.domain.record import evolve
from holdfast.domain.rights import TABLE, WORK, Grants, Reach, Thing, decide, places_of, reach, sight_of
from holdfast.domain.rights import submission_refusal as refused_submission
from holdfast.ports.store import JobFilter, Submission
from holdfast.service.access.scopes import read_scopes
from holdfast.service.admission.records import new_job
from tests.reading import read_job_mapping
from tools.memory_store import MemoryStore

HERS = Thing(Subject.JOB, "gpu", "ann", 1001, "sweeps/7")


def with_scopes(*texts: str, role: Role = Role.USER, name: str = "ann") -> Principal:
    scopes, problems = read_scopes(texts)
    assert problems == []
    return Principal(name, uid=1001, roles=(role,), limit=Limit(role, scopes))


@pytest.mark.parametrize(
    "text",
    [
        "*@*",
        "watch@job",
        "submit,watch@job:queue=gpu",
        "*@array:group=sweeps/7",
        "*@job-set:group=sweeps/",
        "watch@job:group=a b:c=d,e@f",
        "watch@job:queue=a:b@c",
        "watch@job:group=größe/",
    ],
)
def test_a_scope_is_shown_as_it_was_written_and_read_again_from_what_is_stored(text: str) -> None:
    (scope,), problems = read_scopes([text])
    assert (str(scope), problems) == (text, [])
    token = ApiToken("ci", "id", "digest", "ann", 1001, Role.USER, (scope,))
    assert load_entry(ApiToken, dump_entry(token)) == token


@pytest.mark.parametrize(
    ("text", "message", "allowed"),
    [
        ("watch@job:gpu", "'gpu' is not a queue or a group", "queue=NAME"),
        ("watch@job:", "'' is not a queue or a group", "group=GROUP/"),
        ("watch@job:queue=", "'' is not the name of a queue", "queue=NAME"),
        ("watch@job:group=", "'' is not the name of a group", "group=GROUP"),
        ("watch@job:group=//", "'//' is not the name of a group", "group=GROUP"),
        ("watch@job:Queue=gpu", "'Queue=gpu' is not a queue or a group", "queue=NAME"),
        ("watch@job:label=x", "'label=x' is not a queue or a group", "queue=NAME"),
        ("watch@job:group=a\nb", "'a\\nb' is not the name of a group", "group=GROUP"),
        ("watch@job:queue=" + "q" * 256, f"'{'q' * 80}...' is not the name of a queue", "queue=NAME"),
        ("watch@job:group=" + "g" * 1024, f"'{'g' * 80}...' is not the name of a group", "group=GROUP"),
        ("watch@queue:queue=gpu", "queue has no queue and no group", "array"),
        ("*@*:group=sweeps/", "* has no queue and no group", "job-set"),
        ("watch@jop:queue=gpu", "'jop' is not a kind", "job"),
        ("wach@job:queue=gpu", "'wach' is not a verb", "watch"),
        ("queue=gpu", "'queue=gpu' does not have the form VERBS@KIND", None),
    ],
)
def test_what_is_no_scope_is_refused_with_what_is_allowed(text: str, message: str, allowed: str | None) -> None:
    found, problems = read_scopes(["watch@job", text])
    assert (found, {one.path for one in problems}) == ((Scope(("watch",), "job"),), {"scopes[1]"})
    assert problems[0].message == message
    assert problems[0].hint
    assert allowed is None or allowed in problems[0].allowed


PLACES = [
    ("group=lab/", "lab", True),
    ("group=lab/", "lab/1", True),
    ("group=lab/", "lab/1/2", True),
    ("group=lab/", "laboratory", False),
    ("group=lab/", "lab0", False),
    ("group=lab/", "lab.", False),
    ("group=lab/", "la", False),
    ("group=lab/", "", False),
    ("group=lab/", "x/lab/1", False),
    ("group=lab/", "LAB/1", False),
    ("group=lab", "lab", True),
    ("group=lab", "lab/1", False),
    ("group=lab", "lab/", False),
    ("group=la%/", "lab/1", False),
    ("group=l_b/", "lab/1", False),
    ("group=la%/", "la%/1", True),
    ("group=größe/", "größe/1", True),
    ("group=größe/", "gro\u0308\u00dfe/1", False),
    ("queue=gpu", "", True),
    ("queue=gp", "", False),
    ("queue=gpu2", "", False),
    ("queue=GPU", "", False),
    ("queue=%", "", False),
]


@pytest.mark.parametrize(("where", "group", "inside"), PLACES)
def test_a_place_is_a_whole_queue_and_groups_by_their_segments(where: str, group: str, *, inside: bool) -> None:
    thing = evolve(HERS, group=group)
    for role in ROLES[1:]:
        ann = with_scopes(f"*@job:{where}", role=role)
        for kind in WORK:
            for right in TABLE[kind]:
                assert (decide(ann, right, evolve(thing, kind=kind), Grants()) is None) is inside
            assert (refused_submission(ann, evolve(thing, kind=kind), ()) is None) is inside
            assert sight_of(ann, evolve(thing, kind=kind), Grants()) is (Sight.EVERYTHING if inside else Sight.NOTHING)


def test_a_place_gives_nobody_more_than_they_have() -> None:
    viewer, ben = with_scopes("*@job:queue=gpu", role=Role.VIEWER), with_scopes("*@job:queue=gpu", name="ben")
    assert decide(viewer, Right.CANCEL, HERS, Grants()) is not None
    assert decide(ben, Right.CANCEL, HERS, Grants()) is not None
    assert sight_of(ben, HERS, Grants(others_see=Sight.EXISTENCE)) is Sight.EXISTENCE
    operator = with_scopes("*@job:queue=gpu", name="ops", role=Role.OPERATOR)
    assert reach(operator, Right.CANCEL, Subject.JOB) is Reach.SOME
    assert decide(operator, Right.CANCEL, HERS, Grants()) is None
    assert reach(operator, Right.CANCEL, Subject.NODE) is Reach.NONE


def test_scopes_add_up_each_with_its_own_place() -> None:
    ann = with_scopes("watch@job:queue=gpu", "watch,submit@array:group=sweeps/", "cancel@job")
    assert places_of(ann, Right.WATCH, Subject.JOB) == (WorkScope(queue="gpu"),)
    assert places_of(ann, Right.WATCH, Subject.ARRAY) == (WorkScope(queue="gpu"), WorkScope(group="sweeps/"))
    assert places_of(ann, Right.CANCEL, Subject.JOB_SET) is None
    assert places_of(ann, Right.LOGS, Subject.JOB) == ()
    assert places_of(with_scopes("watch@job:queue=gpu", "watch@job"), Right.WATCH, Subject.JOB) is None
    assert decide(ann, Right.CANCEL, evolve(HERS, queue="cpu"), Grants()) is None


def test_who_may_only_watch_is_shown_no_logs_though_others_see_everything() -> None:
    seen = Grants(others_see=Sight.EVERYTHING)
    assert sight_of(with_scopes("watch@job"), HERS, seen) is Sight.DETAILS
    assert sight_of(with_scopes("watch,logs@job"), HERS, seen) is Sight.EVERYTHING
    assert sight_of(with_scopes("logs@job"), HERS, seen) is Sight.NOTHING
    assert sight_of(with_scopes("watch@job", "logs@job:queue=cpu"), HERS, seen) is Sight.DETAILS


def test_a_refusal_names_the_right_the_scope_and_where_it_could_be() -> None:
    ann = with_scopes("submit,cancel@job:queue=gpu", "submit@job:group=sweeps/")
    refused = refused_submission(ann, Thing(Subject.JOB, "cpu", group="other"), ())
    assert refused is not None
    assert refused.message == (
        "ann may not submit jobs to queue cpu and group other with this token: "
        "its scope is submit,cancel@job:queue=gpu submit@job:group=sweeps/"
    )
    assert refused.hint == "put it in queue gpu, or in group sweeps or below; or use another token, or none"
    refused = decide(ann, Right.CANCEL, evolve(HERS, queue="cpu"), Grants())
    assert refused is not None
    assert refused.message.startswith("ann may not cancel this job with this token: its scope is submit,cancel@job")


def test_whoever_sees_all_of_one_place_sees_others_work_there_alone() -> None:
    seen = Seen(everyones=True, places=(WorkScope(queue="gpu"),))
    job = new_job(read_job_mapping({"name": "one", "command": ["true"], "queue": "gpu"}), "j1", 1.0)
    store = MemoryStore()
    for queue in ("cpu", "gpu"):
        store.put_entry(Queue(queue))
        store.submit(Submission([evolve(job, id=queue, queue=queue)]))
    assert [one.id for one in store.jobs(JobFilter(seen=seen))] == ["gpu"]
    assert store.jobs(JobFilter(seen=evolve(seen, places=()))) == []
