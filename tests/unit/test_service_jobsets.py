"""Job sets through the service: what is taken, refused, changed, asked of the controller, and told of it."""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.compiled.codec import load_change, load_set_spec
from holdfast.dialects.documents import read_documents
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Act, Caller, Subject
from holdfast.domain.job import JobState
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import AlreadyExists, Conflict, InvalidManifest, InvalidRequest, NotFound, Refused
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import JobFilter
from holdfast.service.jobsets.sets import SetWriter, set_named
from holdfast.service.operations.filters import JobQuery, read_filter
from holdfast.service.operations.jobsets import JobSetOperations
from holdfast.service.operations.seeing import Seeing
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobs import JOBS
from holdfast.service.steering.jobsets import JOB_SETS
from tests.unit.conftest import exits
from tests.unit.jobset_lab import SetLab, group, manifest
from tests.unit.jobset_service import ADMIN, JOB, NATIVE, Counting, backend_of, native, served_lab

if TYPE_CHECKING:
    from collections.abc import Callable

BY = Caller(Principal("ann", roles=(Role.USER,)), 5.0)


@pytest.fixture
def lab() -> SetLab:
    return served_lab()


@pytest.fixture
def sets(lab: SetLab) -> SetWriter:
    return SetWriter(lab.store, lab.clock, Counting())


@pytest.fixture
def control(lab: SetLab) -> Control[JobSet]:
    return Control(JOB_SETS, lab.store, lab.clock, actor="bob")


def changed(document: dict[str, Any], edit: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    found = copy.deepcopy(document)
    edit(found)
    return found


def test_a_set_is_stored_with_all_of_its_jobs(sets: SetWriter, lab: SetLab) -> None:
    applied = sets.create(NATIVE)
    assert (applied.result, applied.job_set.name, applied.job_set.generation) == ("created", "short", 1)
    jobs = lab.store.jobs(JobFilter(job_set=applied.job_set.id))
    assert [job.name for job in jobs] == ["short-driver-0", "short-workers-0", "short-workers-1"]
    assert {job.state for job in jobs} == {JobState.WAITING}
    assert [(job.child.group, job.child.index) for job in jobs if job.child] == [
        ("driver", 0),
        ("workers", 0),
        ("workers", 1),
    ]
    assert {job.queue for job in jobs} == {"small"}
    assert jobs[1].spec == jobs[2].spec != jobs[0].spec
    (request,) = lab.store.requests(limit=9)
    assert (request.kind, request.targets) == (RequestKind.SUBMIT, (applied.job_set.id,))
    labelled = JobFilter(labels=(("team", "blue"), ("jobset.sigs.k8s.io/replicatedjob-name", "workers")))
    assert [job.name for job in lab.store.jobs(labelled)] == ["short-workers-0", "short-workers-1"]


def test_a_set_that_was_created_runs(sets: SetWriter, lab: SetLab) -> None:
    lab.plan = lambda _: exits(0)
    sets.create(NATIVE)
    lab.pass_s(10)
    assert set_named(lab.store, "short").state.terminal == "Completed"


def test_a_name_is_taken_once(sets: SetWriter, lab: SetLab) -> None:
    sets.create(NATIVE)
    with pytest.raises(AlreadyExists):
        sets.create(NATIVE, caller=BY)
    with pytest.raises(AlreadyExists):
        sets.create(NATIVE, dry_run=True)
    (_, entry) = lab.store.audit(after=0, limit=9)[-1]
    assert (entry.act, entry.subject, entry.name, entry.outcome) == (
        Act.CREATE,
        Subject.JOB_SET,
        "short",
        "already_exists",
    )


def test_the_same_sent_again_with_its_key_stores_nothing(sets: SetWriter, lab: SetLab) -> None:
    first = sets.create(NATIVE, key="k")
    again = sets.create(NATIVE, key="k")
    assert again.job_set.id == first.job_set.id
    assert len(lab.store.workloads(JobSet)) == 1
    with pytest.raises(Conflict):
        sets.create(native(priority=3), key="k")
    empty = manifest("empty", replicatedJobs=[])
    assert sets.create(empty, key="e").job_set.id == sets.create(empty, key="e").job_set.id


def test_a_dry_run_checks_and_stores_nothing(sets: SetWriter, lab: SetLab) -> None:
    assert sets.create(NATIVE, dry_run=True).result == "valid"
    with pytest.raises(InvalidManifest):
        sets.create(native(queue="nope"), dry_run=True)
    assert lab.store.workloads(JobSet) == []
    assert lab.store.requests(limit=9) == []


UPSTREAM = manifest(replicatedJobs=[group("a"), group("b")])
CONTAINER = "spec.replicatedJobs[1].template.spec.template.spec.containers[0]"


def label_queue(document: dict[str, Any]) -> None:
    document["metadata"]["labels"] = {"holdfast.dev/queue": "nope"}


def ask_for(document: dict[str, Any], **amounts: object) -> None:
    pod = document["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]
    pod["containers"][0]["resources"] = {"requests": amounts}
    document["metadata"]["labels"] = {"holdfast.dev/queue": "small"}


@pytest.mark.parametrize(
    ("document", "error", "paths"),
    [
        (native(queue="nope"), InvalidManifest, ["spec.queue"]),
        (changed(UPSTREAM, label_queue), InvalidManifest, ["metadata.labels.holdfast.dev/queue"]),
        (
            changed(NATIVE, lambda one: one["spec"]["jobs"][1].update(retryPolicies=["patient", "brave"])),
            InvalidManifest,
            ["spec.jobs[1].retryPolicies[1]"],
        ),
        (
            changed(NATIVE, lambda one: one["spec"]["jobs"][0].update(resources={"cpu": 501})),
            Refused,
            ["spec.jobs[0].resources.cpu"],
        ),
        (changed(UPSTREAM, lambda one: ask_for(one, cpu=501)), Refused, [f"{CONTAINER}.resources.requests.cpu"]),
        (
            changed(NATIVE, lambda one: one["spec"]["jobs"][0].update(replicas=100_001)),
            InvalidManifest,
            ["spec.jobs"],
        ),
    ],
)
def test_what_a_set_cannot_have_here_is_refused_where_it_is_written(
    sets: SetWriter, document: dict[str, Any], error: type[Exception], paths: list[str]
) -> None:
    with pytest.raises(error) as caught:
        sets.create(document)
    assert [problem.path for problem in caught.value.problems] == paths  # type: ignore[attr-defined]


def test_refusals_of_a_text_have_lines(sets: SetWriter) -> None:
    text = "apiVersion: holdfast.dev/v1\nkind: JobSet\nmetadata: {name: a}\nspec:\n  queue: nope\n  jobs: []\n"
    text = text.replace("[]", "[{name: a, command: [x]}]")
    with pytest.raises(InvalidManifest) as caught:
        sets.create(read_documents(text)[0])
    assert [problem.line for problem in caught.value.problems] == [5]


def test_what_is_no_job_set_is_refused(sets: SetWriter) -> None:
    with pytest.raises(InvalidManifest) as caught:
        sets.create(JOB)
    assert [problem.path for problem in caught.value.problems] == ["kind"]


def test_a_lenient_reading_is_remembered_and_warned_of(sets: SetWriter, lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w")])
    del document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["command"]
    with pytest.raises(InvalidManifest):
        sets.create(document)
    applied = sets.create(document, lenient=True)
    assert applied.job_set.lenient
    assert applied.warnings
    assert load_set_spec(lab.store.workload(JobSet, "train").spec).name == "train"


@pytest.mark.parametrize(("first", "then", "word"), [(True, False, "leniently"), (False, True, "strictly")])
def test_a_set_is_applied_as_it_was_created(sets: SetWriter, first: bool, then: bool, word: str) -> None:  # noqa: FBT001 - a table
    document = manifest(replicatedJobs=[group("w")])
    alone = changed(document, lambda one: pod_of(one)["containers"][0].pop("command"))
    sets.put(alone if first else document, lenient=first)
    with pytest.raises(InvalidManifest) as caught:
        sets.put(alone, lenient=then)
    assert word in str(caught.value.hint)


def pod_of(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return found


def test_applying_creates_then_leaves_alone_then_asks_for_a_change(sets: SetWriter, lab: SetLab) -> None:
    assert sets.put(NATIVE).result == "created"
    assert sets.put(native()).result == "unchanged"
    assert len(lab.store.requests(limit=9)) == 1
    document = native(suspend=True)
    assert sets.put(document, dry_run=True).result == "valid"
    assert sets.put(document, caller=BY).result == "updated"
    request = lab.store.requests(limit=9)[-1]
    assert (request.kind, request.actor) == (RequestKind.UPDATE, "ann")
    change = load_change(request.payload)
    assert load_set_spec(change.spec).suspend
    assert json.loads(change.manifest)["spec"]["suspend"]
    lab.pass_s(1)
    row = set_named(lab.store, "short")
    assert (row.generation, json.loads(row.manifest)["spec"]["suspend"]) == (2, True)
    assert sets.put(document).result == "unchanged"


def test_a_set_resumed_by_hand_is_not_changed_by_what_it_was_created_from(
    sets: SetWriter, control: Control[JobSet], lab: SetLab
) -> None:
    sets.create(NATIVE)
    control.ask(Act.SUSPEND, "short")
    lab.pass_s(1)
    control.ask(Act.RESUME, "short")
    lab.pass_s(1)
    assert '"suspend":false' in set_named(lab.store, "short").manifest
    assert sets.put(NATIVE).result == "unchanged"


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        (lambda one: one["spec"]["jobs"][0].update(command=["other"]), "spec.jobs"),
        (lambda one: one["spec"].update(queue="default"), "spec.queue"),
        (lambda one: one["spec"].update(failurePolicy={"maxRestarts": 3}), "spec.failurePolicy"),
    ],
)
def test_what_may_not_change_is_refused(sets: SetWriter, edit: Callable[[dict[str, Any]], None], path: str) -> None:
    sets.create(NATIVE)
    with pytest.raises(InvalidManifest) as caught:
        sets.put(changed(NATIVE, edit))
    assert [problem.path for problem in caught.value.problems] == [path]


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda jobs: jobs[0].update(command=["driver", "-v"]), "command of driver"),
        (lambda jobs: jobs[1].update(command=["worj"], env={"A": "b"}), "command[0] of workers, env of workers"),
        (lambda jobs: jobs[1].update(replicas=3), "replicas of workers"),
        (lambda jobs: jobs[1].update(name="helpers"), "helpers is new, workers is gone"),
        (lambda jobs: jobs.reverse(), "their order"),
    ],
)
def test_a_refused_change_names_what_may_not_change(
    sets: SetWriter, edit: Callable[[list[dict[str, Any]]], None], named: str
) -> None:
    sets.create(NATIVE)
    with pytest.raises(InvalidManifest) as caught:
        sets.put(changed(NATIVE, lambda one: edit(one["spec"]["jobs"])))
    assert [problem.hint for problem in caught.value.problems] == [f"what may not change: {named}"]


def test_a_change_to_what_must_exist_needs_it(sets: SetWriter) -> None:
    with pytest.raises(NotFound):
        sets.put(NATIVE, create=False)


def test_a_set_that_is_going_takes_no_change(sets: SetWriter, control: Control[JobSet], lab: SetLab) -> None:
    sets.create(NATIVE)
    lab.pass_s(2)
    control.ask(Act.DELETE, "short")
    lab.controller.tick([])
    assert set_named(lab.store, "short").deleting
    for refused in (
        lambda: sets.put(native(suspend=True)),
        lambda: control.ask(Act.SUSPEND, "short"),
        lambda: control.ask(Act.RESTART, "short"),
    ):
        with pytest.raises(Conflict):
            refused()
    assert control.ask(Act.DELETE, "short").deleting


def test_a_deleted_set_is_gone_and_its_jobs_stay(sets: SetWriter, control: Control[JobSet], lab: SetLab) -> None:
    set_id = sets.create(NATIVE).job_set.id
    lab.pass_s(2)
    control.ask(Act.DELETE, "short", "no more")
    lab.pass_s(60)
    with pytest.raises(NotFound):
        set_named(lab.store, "short")
    seeing = Seeing(lab.store, None, Caller(Principal("lab", roles=(Role.ADMIN,)), 0.0))
    where = read_filter(seeing, JobQuery(job_set=set_id))
    assert where == JobFilter(job_set=set_id)
    assert {job.state for job in lab.store.jobs(where)} == {JobState.CANCELLED}
    with pytest.raises(NotFound):
        read_filter(seeing, JobQuery(job_set="short"))


def test_what_is_asked_of_the_controller_names_the_set_who_and_why(
    sets: SetWriter, control: Control[JobSet], lab: SetLab
) -> None:
    set_id = sets.create(NATIVE).job_set.id
    lab.pass_s(1)
    control.ask(Act.SUSPEND, "short", "lunch")
    control.ask(Act.RESTART, set_id, "odd", caller=BY, what={"group": "workers", "index": 1})
    control.ask(Act.RESTART, "short", what={"group": "workers"})
    control.ask(Act.RESTART, "short")
    control.ask(Act.DELETE, "short")
    suspend, *others = lab.store.requests(limit=9)
    assert (suspend.kind, suspend.actor, suspend.reason) == (RequestKind.HOLD, "bob", "lunch")
    assert load_set_spec(load_change(suspend.payload).spec).suspend
    assert [(one.kind, one.actor, one.reason, one.payload) for one in others] == [
        (RequestKind.RESTART, "ann", "odd", '{"group": "workers", "index": 1}'),
        (RequestKind.RESTART, "bob", "", '{"group": "workers"}'),
        (RequestKind.RESTART, "bob", "", "{}"),
        (RequestKind.DELETE, "bob", "", ""),
    ]
    (_, entry) = lab.store.audit(after=0, limit=9)[-1]
    assert (entry.act, entry.subject, entry.name, entry.detail) == (Act.RESTART, Subject.JOB_SET, set_id, "odd")


def test_what_is_so_already_is_not_asked_for_unless_something_is_pending(
    sets: SetWriter, control: Control[JobSet], lab: SetLab
) -> None:
    sets.create(NATIVE)
    lab.pass_s(1)
    control.ask(Act.RESUME, "short")
    assert lab.store.requests(limit=9) == []
    control.ask(Act.SUSPEND, "short")
    control.ask(Act.RESUME, "short")
    assert [one.kind for one in lab.store.requests(limit=9)] == [RequestKind.HOLD, RequestKind.RELEASE]


@pytest.mark.parametrize(
    ("group_name", "index", "error"),
    [("nope", None, NotFound), ("workers", 2, NotFound), (None, 0, InvalidRequest)],
)
def test_a_restart_of_what_is_not_there_is_refused(
    sets: SetWriter, control: Control[JobSet], group_name: str | None, index: int | None, error: type[Exception]
) -> None:
    sets.create(NATIVE)
    with pytest.raises(error):
        control.ask(Act.RESTART, "short", what={"group": group_name, "index": index})


def test_a_set_that_is_over_can_only_be_deleted(sets: SetWriter, control: Control[JobSet], lab: SetLab) -> None:
    lab.plan = lambda _: exits(0)
    sets.create(NATIVE)
    lab.pass_s(10)
    for refused in (Act.SUSPEND, Act.RESUME, Act.RESTART):
        with pytest.raises(Conflict, match="Completed already"):
            control.ask(refused, "short")
    control.ask(Act.DELETE, "short")


def test_lists_are_cut_by_name(sets: SetWriter, lab: SetLab) -> None:
    for name in ("c", "a", "b"):
        sets.create(manifest(name, replicatedJobs=[group("w")]))
    page = partial(JobSetOperations(backend_of(lab.store)).page, ADMIN)
    first = page(limit=2)
    assert ([one.name for one in first.rows], first.next_after) == (["a", "b"], "b")
    rest = page(after="b", limit=2)
    assert ([one.name for one in rest.rows], rest.next_after) == (["c"], None)


def test_the_jobs_of_a_set_come_with_what_is_known_of_their_pods(sets: SetWriter, lab: SetLab) -> None:
    row = sets.create(NATIVE).job_set
    lab.pass_s(2)
    children = partial(JobSetOperations(backend_of(lab.store)).children, ADMIN, row)
    first = children(limit=2)
    assert [(one.at.group, one.at.index) for one in first.children] == [("driver", 0), ("workers", 0)]
    assert [one.pods.state.active for one in first.children if one.pods] == [1, 1]
    assert first.next_after is not None
    rest = children(after=first.next_after, limit=2)
    assert [one.at.index for one in rest.children] == [1]
    assert rest.next_after is None


def test_a_job_of_a_set_is_steered_through_its_set(sets: SetWriter, lab: SetLab) -> None:
    sets.create(NATIVE)
    jobs = Control(JOBS, lab.store, lab.clock)
    for refused in (Act.CANCEL, Act.HOLD, Act.RELEASE):
        with pytest.raises(Conflict) as caught:
            jobs.ask(refused, "short-driver-0")
        assert caught.value.hint is not None
        assert "job set" in caught.value.hint


class Overtaken(Counting):
    """Ids before the first of which somebody else acts."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act: Callable[[], object] | None = act

    def new(self) -> str:
        act, self._act = self._act, None
        if act is not None:
            act()
        return f"late-{super().new()}"


def test_of_two_first_puts_at_once_one_creates_and_the_other_changes_nothing(sets: SetWriter, lab: SetLab) -> None:
    late = SetWriter(lab.store, lab.clock, Overtaken(lambda: sets.put(NATIVE)))
    assert late.put(NATIVE).result == "unchanged"
    assert [one.name for one in JobSetOperations(backend_of(lab.store)).page(ADMIN).rows] == ["short"]
