"""Job sets: what nothing counts is restarted at a pace, for as long as its restarts follow each other quickly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.cli.render.jobsets import jobset_table
from holdfast.compiled.codec import dump_set_spec, load_set_spec
from holdfast.dialects.jobset.pace import RESTART_PACE
from holdfast.domain.job import Resources
from holdfast.domain.policy.model import Backoff, SetAction
from holdfast.domain.workloads.jobset.explain import set_status_lines
from holdfast.domain.workloads.jobset.manual import restart_group, restart_job, restart_set
from holdfast.domain.workloads.jobset.model import RestartPace
from holdfast.domain.workloads.jobset.state import JobSet, SetDecision, Terminal
from holdfast.errors import InvalidManifest
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import Request, RequestKind
from holdfast.wire.base import timestamp
from holdfast.wire.jobsets import JobSetSummary
from holdfast.wire.render_jobsets import set_summary
from tests.unit.conftest import exits
from tests.unit.jobset_lab import SetLab, change_to, compiled, group, manifest
from tests.unit.test_jobset import Set, created, policy
from tools.cases.kube_reading import read_kube

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.workloads.jobset.state import JobSetState


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    return lab


UNCOUNTED = (SetAction.RESTART_JOB_SET_UNCOUNTED, SetAction.RESTART_GROUP_UNCOUNTED, SetAction.RESTART_JOB_UNCOUNTED)
QUICK = RestartPace(at_once=2, backoff=Backoff(initial_s=1.0, max_s=5.0), within_s=60.0, reset_after_s=600.0)


def fails(a_set: Set, *, after_s: float = 0.0, job: str = "js-workers-0") -> float:
    """Let a job that may start now run for a while and fail; return how long it then waits."""
    a_set.gone()
    a_set.now = max([a_set.now, *a_set.state.not_before.values()])
    a_set.look()
    a_set.now += after_s
    return a_set.fail(job).decisions[0].delay_s


@pytest.mark.parametrize("action", UNCOUNTED)
def test_a_few_restarts_are_not_delayed_and_those_that_follow_quickly_ever_longer(action: SetAction) -> None:
    a_set = Set(policy(action, pace=QUICK))
    assert [fails(a_set, after_s=60.0) for _ in range(6)] == [0.0, 0.0, 1.0, 2.0, 4.0, 5.0]
    waits = a_set.gone()
    assert (created(waits), waits.wake_at) == ([], a_set.now + 5.0)


@pytest.mark.parametrize("action", UNCOUNTED)
def test_what_lasts_longer_is_never_delayed_however_often_it_is_restarted(action: SetAction) -> None:
    a_set = Set(policy(action))
    assert {fails(a_set, after_s=60.5) for _ in range(50)} == {0.0}


@pytest.mark.parametrize(
    ("lasted_s", "then"), [(60.5, [0.0, 4.0]), (599.5, [0.0, 4.0]), (600.0, [0.0, 0.0, 1.0]), (4e6, [0.0, 0.0, 1.0])]
)
def test_only_what_was_healthy_for_a_while_is_counted_anew(lasted_s: float, then: list[float]) -> None:
    a_set = Set(policy(SetAction.RESTART_JOB_UNCOUNTED, pace=QUICK))
    assert [fails(a_set) for _ in range(4)] == [0.0, 0.0, 1.0, 2.0]
    assert [fails(a_set, after_s=lasted_s), *(fails(a_set) for _ in then[1:])] == then


def test_many_jobs_that_fail_at_one_moment_do_not_delay_each_other() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB_UNCOUNTED, pace=QUICK))
    for delay_s in (0.0, 0.0, 1.0):
        assert {fails(a_set, job=f"js-workers-{index}") for index in range(3)} == {delay_s}


def test_counted_restarts_have_no_pace_and_a_back_off_that_is_asked_for_goes_before_it() -> None:
    assert {fails(Set(policy(SetAction.RESTART_JOB, limit=50, pace=QUICK))) for _ in range(9)} == {0.0}
    asked = Set(policy(SetAction.RESTART_JOB_UNCOUNTED, pace=QUICK, backoff=Backoff(initial_s=7.0)))
    assert [fails(asked, after_s=1000.0) for _ in range(3)] == [7.0, 14.0, 28.0]
    assert asked.state.streaks == {}


def test_without_a_pace_restarts_follow_each_other_as_upstream() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB_SET_UNCOUNTED, pace=None))
    assert {fails(a_set) for _ in range(100)} == {0.0}


def test_only_what_was_restarted_lately_is_remembered_and_nothing_after_the_end() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB_UNCOUNTED, pace=QUICK))
    fails(a_set, job="js-workers-1")
    fails(a_set, after_s=600.0)
    assert list(a_set.state.streaks) == ["job/js-workers-0"]
    a_set.gone()
    a_set.succeed()
    assert (a_set.state.terminal, a_set.state.streaks) == (Terminal.COMPLETED, {})


@pytest.mark.parametrize(
    ("action", "restart"),
    [
        (SetAction.RESTART_JOB_SET_UNCOUNTED, lambda one: restart_set(one.spec, one.state, one.now).state),
        (SetAction.RESTART_GROUP_UNCOUNTED, lambda one: restart_group(one.spec, one.state, "workers").state),
        (SetAction.RESTART_JOB_UNCOUNTED, lambda one: restart_group(one.spec, one.state, "workers").state),
        (SetAction.RESTART_JOB_UNCOUNTED, lambda one: restart_job(one.spec, one.state, "workers", 0).state),
    ],
)
def test_a_restart_that_a_person_asks_for_does_not_wait(
    action: SetAction, restart: Callable[[Set], JobSetState]
) -> None:
    a_set = Set(policy(action, pace=QUICK))
    assert [fails(a_set) for _ in range(4)][-1] == 2.0
    a_set.state = restart(a_set)
    a_set.look()
    assert "js-workers-0" in created(a_set.gone())
    assert fails(a_set) == 0.0


def test_a_person_who_restarts_one_job_leaves_the_others_waiting() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB_UNCOUNTED, pace=QUICK))
    for _ in range(3):
        fails(a_set, job="js-workers-0")
        a_set.fail("js-workers-1")
    a_set.state = restart_job(a_set.spec, a_set.state, "workers", 0).state
    a_set.look()
    assert created(a_set.gone()) == ["js-workers-0"]


def test_where_restarts_are_due_is_shown_by_lists_and_explained() -> None:
    a_set = Set(policy(SetAction.RESTART_JOB_SET_UNCOUNTED, pace=QUICK))
    assert [fails(a_set) for _ in range(4)][-1] == 2.0
    record = JobSet(id="1", name="js", created_at=0.0, state=a_set.state)
    view = set_summary(record, a_set.spec, queue="q")
    assert (view.state, view.restart_at) == ("Restarting", timestamp(a_set.now + 2.0))
    assert jobset_table([JobSetSummary.model_validate(view)], now_s=a_set.now)[1][0][2] == "4 (next in 2s)"
    delay = "Back-off: the set starts again in 2s: it was restarted 4 times in quick succession; "
    assert f"{delay}the count restarts once it has lasted 10m." in list(set_status_lines(record, a_set.spec, a_set.now))


def short(**spec: object) -> dict[str, Any]:
    spec = {"jobs": [{"name": "a", "command": ["true"]}], **spec}
    return {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "w"}, "spec": spec}


RULES = [{"action": "RestartJobSetAndIgnoreMaxRestarts"}]
FORMS = {
    "upstream": lambda rules: manifest("w", failurePolicy={"rules": rules}, replicatedJobs=[group("a")]),
    "short": lambda rules: short(failurePolicy={"rules": rules}),
}


def paced(form: str, text: str, rules: list[dict[str, Any]] = RULES) -> dict[str, Any]:
    document: dict[str, Any] = FORMS[form](rules)
    document["metadata"]["annotations"] = {RESTART_PACE: text}
    return document


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("text", "pace"),
    [
        ("none", None),
        (" none ", None),
        ("atOnce=0", RestartPace(at_once=0)),
        ("initialDelay=10m", RestartPace(backoff=Backoff(initial_s=600.0, max_s=600.0))),
        (
            "atOnce=3, initialDelay=250ms,maxDelay=30, within=2m,resetAfter=1h",
            RestartPace(at_once=3, backoff=Backoff(initial_s=0.25, max_s=30.0), within_s=120.0, reset_after_s=3600.0),
        ),
    ],
)
def test_an_annotation_of_either_form_sets_the_pace(form: str, text: str, pace: RestartPace | None) -> None:
    spec = compiled(paced(form, text))
    assert spec.failure is not None
    assert spec.failure.pace == pace
    assert load_set_spec(dump_set_spec(spec)) == spec
    assert '"pace"' not in dump_set_spec(compiled(FORMS[form](RULES)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        ("fast", ".fast", "unknown field 'fast'"),
        ("atOnce=-1", ".atOnce", "must be a whole number"),
        ("atOnce=" + "9" * 5000, ".atOnce", "must be a whole number"),
        ("atOnce=9999999999", ".atOnce", "is out of range"),
        ("initialDelay=soon", ".initialDelay", "soon"),
        ("maxDelay=500ms", ".maxDelay", "is shorter than the initialDelay of 1s"),
        ("resetAfter=10s", ".resetAfter", "is shorter than the 1m of within"),
    ],
)
def test_a_pace_that_cannot_be_is_refused(form: str, text: str, path: str, says: str) -> None:
    with pytest.raises(InvalidManifest) as caught:
        compiled(paced(form, text))
    (problem,) = caught.value.problems
    assert problem.path == f"metadata.annotations.{RESTART_PACE}{path}"
    assert says in problem.message


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rules", [[], [{"action": "RestartJobSet"}]])
def test_a_pace_that_nothing_has_is_warned_of(form: str, rules: list[dict[str, Any]]) -> None:
    (warning,) = [one for one in read_kube(paced(form, "none", rules)).warnings if RESTART_PACE in one.path]
    assert "has no effect" in warning.message


def test_a_pace_is_warned_of_on_templates_and_where_rules_have_back_offs() -> None:
    template = FORMS["upstream"](RULES)
    template["spec"]["replicatedJobs"][0]["template"]["metadata"] = {"annotations": {RESTART_PACE: "none"}}
    delayed = paced("short", "none", [{**RULES[0], "backoff": {"initialDelay": "1s"}}])
    for document, path in ((template, "spec.replicatedJobs[0].template.metadata"), (delayed, "metadata")):
        (warning,) = [one for one in read_kube(document).warnings if RESTART_PACE in one.path]
        assert (warning.path, "has no effect" in warning.message) == (f"{path}.annotations.{RESTART_PACE}", True)


def test_a_set_that_lasts_for_hours_is_restarted_at_once_after_any_number_of_restarts(lab: SetLab) -> None:
    set_id = lab.submit_set(paced("short", "atOnce=1"), lambda _: exits(1, after_s=3600.0))
    lab.pass_s(40 * 3600.0, every_s=300.0)
    delays = [each.what.delay_s for each in lab.store.set_log(set_id) if isinstance(each.what, SetDecision)]
    assert (len(delays) > 30, set(delays)) == (True, {0.0})


def test_a_pace_that_is_changed_meanwhile_holds_from_the_next_restart_on(lab: SetLab) -> None:
    set_id = lab.submit_set(paced("upstream", "atOnce=0,initialDelay=1h,maxDelay=1h"), lambda _: exits(127, after_s=0))
    lab.pass_s(30)
    change = change_to(paced("upstream", "none"))
    lab.store.append(Request(RequestKind.UPDATE, (set_id,), lab.clock.now(), payload=change))
    lab.pass_s(30)
    assert len(lab.orders) == 1
    lab.pass_s(3600, every_s=60.0)
    assert len(lab.orders) > 3
