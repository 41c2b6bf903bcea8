"""Submission: what is accepted, what is refused and why, and that nothing half-valid is stored."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from holdfast.domain.devices import Device, GpuSelector
from holdfast.domain.job import Ceiling, Node, Queue, Resources, UserLimits
from holdfast.domain.policy.model import RetryPolicy, RetrySettings
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Conflict, HoldfastError, InvalidManifest, InvalidRequest, Problem, Refused
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import JobFilter
from holdfast.service.admission.limits import MOST_JOBS
from holdfast.service.submit import Submitter, WrittenJob
from tools.memory_store import MemoryStore


class Noon:
    def now(self) -> float:
        return 1000.0


class Counting:
    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"job{next(self._numbers):06d}"


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.put_entry(RetryPolicy("infra"))
    store.put_entry(Queue("small", max_running=Ceiling(2000, 1 << 30)))
    return store


@pytest.fixture
def submitter(store: MemoryStore) -> Submitter:
    return Submitter(store, Noon(), Counting())


def _spec(name: str = "train", **fields: Any) -> JobSpec:  # noqa: ANN401 - a table's values
    return JobSpec(**{"name": name, "command": ("true",), **fields})


def _stored(store: MemoryStore) -> int:
    return len(store.jobs(JobFilter()))


def test_a_submitted_job_is_stored_queued_with_a_request_to_take_it_in(
    store: MemoryStore, submitter: Submitter
) -> None:
    job = submitter.submit(_spec(gang=4, priority=7, labels={"team": "nlp"}))
    stored = store.job(job.id)
    assert (stored.state, stored.gang, stored.priority, stored.queued_at) == ("Queued", 4, 7, 1000.0)
    assert [(request.kind, request.targets) for request in store.requests(limit=9)] == [(RequestKind.SUBMIT, (job.id,))]
    assert [one.id for one in store.jobs(JobFilter(labels=(("team", "nlp"),)))] == [job.id]


@pytest.mark.parametrize(
    ("fields", "path", "allowed", "hint"),
    [
        ({"queue": "smal"}, "spec.queue", ("default", "small"), "did you mean small?"),
        ({"retry_policies": ("infra", "x")}, "spec.retryPolicies[1]", ("infra",), "create the retry policy first"),
        ({"gang": 8, "resources": Resources(1, 1 << 59)}, "spec.resources.memory", (), "the amount is for each rank"),
        ({"gang": 8, "resources": Resources(10**9)}, "spec.resources.cpu", (), "the amount is for each rank"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(
    submitter: Submitter, fields: dict[str, Any], path: str, allowed: tuple[str, ...], hint: str
) -> None:
    with pytest.raises(InvalidManifest) as caught:
        submitter.submit(_spec(**fields))
    (problem,) = caught.value.problems
    assert (problem.path, problem.allowed, problem.hint) == (path, allowed, hint)


def test_all_problems_of_a_job_are_told_together(submitter: Submitter) -> None:
    with pytest.raises(InvalidManifest) as caught:
        submitter.submit(_spec(queue="nope", retry_policies=("a", "b")))
    assert [problem.path for problem in caught.value.problems] == [
        "spec.queue",
        "spec.retryPolicies[0]",
        "spec.retryPolicies[1]",
    ]


def test_a_job_that_its_queue_could_never_run_is_refused(store: MemoryStore, submitter: Submitter) -> None:
    with pytest.raises(Refused) as caught:
        submitter.submit(_spec(queue="small", gang=3, resources=Resources(1000, 1 << 30)))
    assert [problem.message for problem in caught.value.problems] == [
        "3 x 1 is more than the 2 that queue 'small' may use at once",
        "3 x 1Gi is more than the 1Gi that queue 'small' may use at once",
    ]
    assert _stored(store) == 0


def test_one_bad_item_keeps_the_whole_bulk_out(store: MemoryStore, submitter: Submitter) -> None:
    unread = InvalidManifest(problems=[Problem("command", "is required", line=3)])
    with pytest.raises(InvalidManifest) as caught:
        submitter.submit_many([_spec(), unread, _spec(queue="nope")])
    assert caught.value.message == "2 of 3 manifests are not valid; nothing was submitted"
    assert [(p.path, p.line) for p in caught.value.problems] == [("items[1].command", 3), ("items[2].spec.queue", None)]
    assert _stored(store) == 0


def test_without_atomic_the_valid_items_are_stored_and_each_outcome_is_told(
    store: MemoryStore, submitter: Submitter
) -> None:
    unread = InvalidManifest("no manifest")
    outcomes = submitter.submit_many([_spec("a"), unread, _spec("b", queue="nope"), _spec("c")], atomic=False)
    assert [(one.index, one.name, one.created is not None) for one in outcomes] == [
        (0, "a", True),
        (1, None, False),
        (2, "b", False),
        (3, "c", True),
    ]
    assert outcomes[1].error is unread
    assert _stored(store) == 2


@pytest.mark.parametrize("number", [0, MOST_JOBS + 1])
def test_a_bulk_is_neither_empty_nor_too_large(submitter: Submitter, number: int) -> None:
    with pytest.raises(InvalidRequest):
        submitter.submit_many([_spec()] * number)


def test_sending_the_same_again_with_its_key_stores_nothing_and_answers_as_before(
    store: MemoryStore, submitter: Submitter
) -> None:
    items: list[JobSpec | HoldfastError] = [_spec("a"), _spec("b", queue="nope"), _spec("c")]
    first = submitter.submit_many(items, atomic=False, key="k1")
    again = submitter.submit_many(items, atomic=False, key="k1")
    ids = [one.created and one.created.id for one in first]
    assert [one.created and one.created.id for one in again] == ids
    assert _stored(store) == 2


def test_a_key_used_for_something_else_is_a_conflict(store: MemoryStore, submitter: Submitter) -> None:
    submitter.submit(_spec("a"), key="k1")
    with pytest.raises(Conflict):
        submitter.submit(_spec("b"), key="k1")
    assert _stored(store) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb"])
def test_a_key_is_short_printable_text(submitter: Submitter, key: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        submitter.submit(_spec(), key=key)
    assert caught.value.problems[0].path == "Idempotency-Key"


def test_how_a_job_is_written_and_what_it_names_are_judged_together(submitter: Submitter) -> None:
    unread = InvalidManifest(problems=[Problem("gang", "must be 1 or more"), Problem("queue", "is no name")])
    written = WrittenJob(_spec(queue="nope", retry_policies=("a",)), unread, flat=True)
    with pytest.raises(InvalidManifest) as caught:
        submitter.submit(written)
    assert [problem.path for problem in caught.value.problems] == ["gang", "queue", "retryPolicies[0]"]


HAS = [
    Node("n", "local", Resources(named=(("scratch", 9000),)), devices=(Device("GPU-1", 0, "NVIDIA A100-SXM4-40GB"),)),
    Node("m", "local", Resources(named=(("licence/matlab", 1000),))),
]


def test_what_asks_for_something_that_nobody_has_is_refused_with_all_of_it(store: MemoryStore) -> None:
    store.put_settings(RetrySettings(resources=(("token/s3", 5000),)), None)
    submitter = Submitter(store, Noon(), Counting(), nodes=lambda: HAS)
    named = (("licence/matlb", 1000), ("scratch", 1000), ("token/s3", 1000), ("tpu", 1000))
    wrong = _spec(resources=Resources(gpu=1, named=named), gpus=GpuSelector("H100*"))
    with pytest.raises(InvalidManifest) as raised:
        submitter.submit(wrong)
    assert [(one.path, one.allowed, one.hint) for one in raised.value.problems][:1] == [
        ("spec.resources.licence/matlb", ("licence/matlab", "scratch", "token/s3"), "did you mean licence/matlab?")
    ]
    assert [one.path for one in raised.value.problems][1:] == ["spec.resources.tpu", "spec.resources.gpu.type"]
    assert raised.value.problems[2].allowed == ("NVIDIA A100-SXM4-40GB",)
    submitter.submit(_spec(resources=Resources(named=named[1:3]), gpus=GpuSelector("a100*")))


def test_while_no_node_has_reported_nothing_is_known_to_be_missing(submitter: Submitter) -> None:
    submitter.submit(_spec(resources=Resources(named=(("tpu", 1000),)), gpus=GpuSelector("H100")))


def test_more_of_what_is_counted_by_a_name_than_the_queue_may_use_is_refused(
    store: MemoryStore, submitter: Submitter
) -> None:
    store.put_entry(Queue("half", max_running=Ceiling(named=(("licence/matlab", 500),))))
    submitter.submit(_spec(queue="half", resources=Resources(named=(("licence/matlab", 500),))))
    with pytest.raises(Refused) as caught:
        submitter.submit(_spec(queue="half", gang=2, resources=Resources(named=(("licence/matlab", 500),))))
    (problem,) = caught.value.problems
    assert problem.path == "spec.resources.licence/matlab"
    assert problem.message == "2 x 0.5 is more than the 0.5 that queue 'half' may use at once"


def test_what_each_user_may_use_of_a_queue_keeps_a_job_out_that_is_more(
    store: MemoryStore, submitter: Submitter
) -> None:
    store.put_entry(Queue("each", max_running=Ceiling(cpu_m=9000), per_user=UserLimits(Ceiling(1000, 1 << 30))))
    submitter.submit(_spec(queue="each", gang=2, resources=Resources(500)))
    with pytest.raises(Refused) as caught:
        submitter.submit(_spec(queue="each", gang=3, resources=Resources(500, 1 << 30)))
    assert [str(one) for one in caught.value.problems] == [
        f"spec.resources.{name}: 3 x {each} is more than the {most} that each user in queue 'each' may use at once;"
        " hint: request less, or use another queue"
        for name, each, most in (("cpu", "0.5", "1"), ("memory", "1Gi", "1Gi"))
    ]


def test_a_share_beyond_what_the_queue_may_use_is_refused(store: MemoryStore, submitter: Submitter) -> None:
    store.put_entry(Queue("half", max_running=Ceiling(gpu=1)))
    with pytest.raises(Refused, match="could never run"):
        submitter.submit(_spec(queue="half", gang=3, resources=Resources(share_m=400)))
