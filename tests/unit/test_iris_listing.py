"""Lists of Iris' door: which jobs are meant, in which order, page by page; and the list of its workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.api.iris._generated import job
from holdfast.domain.job import Resources
from holdfast.engines.simulated.engine import SimulatedEngine
from holdfast.executor.executor import Executor
from holdfast.ports.engine import NodeInfo
from holdfast.service.operations.nodes import Nodes
from tests.unit.conftest import exits
from tests.unit.iris_lab import FOREVER, OWNER, C, IrisLab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.api.iris._generated import controller

NAME, STATE, FAILURES, PREEMPTIONS = 2, 3, 4, 5
ASC, DESC = 1, 2
ROOTS, CHILDREN = 2, 3
HEARTBEAT = 2
TOP, KID, BAD, TWICE, WELL = "/ann/top", "/ann/top/kid", "/ann/Bad", "/bob/twice", "/bob/well"


@pytest.fixture(scope="module")
def iris() -> Iterator[IrisLab]:
    """Two that run, of which one is below the other, and three that have ended, one of them at its second try."""
    iris = IrisLab()
    iris.launch(TOP)
    iris.launch(KID)
    iris.launch(BAD, exits(3))
    iris.launch(TWICE, lambda order: exits(int(order.attempt == 1)), max_task_failures=2, max_retries_failure=2)
    iris.launch(WELL, exits(0))
    iris.pass_s(10.0)
    yield iris
    iris.close()


def listed(iris: IrisLab, **query: Any) -> list[str]:  # noqa: ANN401 - fields by name
    return [one.job_id for one in iris("ListJobs", C.ListJobsRequest(query=C.JobQuery(**query))).jobs]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, [WELL, TWICE, BAD, KID, TOP]),
        ({"job_id_prefix": "/ann/"}, [BAD, KID, TOP]),
        ({"name_filter": "bAD"}, [BAD]),
        ({"scope": ROOTS}, [WELL, TWICE, BAD, TOP]),
        ({"scope": CHILDREN, "parent_job_id": TOP}, [KID]),
        ({"scope": CHILDREN, "parent_job_id": "/ann/to"}, []),
        ({"cluster": "local", "backend_id": "default"}, [WELL, TWICE, BAD, KID, TOP]),
        ({"cluster": "another"}, []),
        ({"backend_id": "another"}, []),
        ({"state_filter": "Succeeded"}, [WELL, TWICE]),
        ({"state_filter": "failed"}, [BAD]),
        ({"state_filter": "worker_failed"}, []),
        ({"state_filter": "running"}, [KID, TOP]),
        ({"state_filter": "nonsense"}, []),
        ({"sort_direction": ASC}, [TOP, KID, BAD, TWICE, WELL]),
        ({"sort_field": NAME}, [BAD, TOP, KID, TWICE, WELL]),
        ({"sort_field": NAME, "sort_direction": DESC}, [WELL, TWICE, KID, TOP, BAD]),
        ({"sort_field": STATE}, [TOP, KID, TWICE, WELL, BAD]),
        ({"sort_field": FAILURES, "sort_direction": DESC}, [BAD, TWICE, TOP, KID, WELL]),
        ({"sort_field": PREEMPTIONS}, [TOP, KID, BAD, TWICE, WELL]),
    ],
)
def test_jobs_are_listed_as_is_asked_for(iris: IrisLab, query: dict[str, Any], found: list[str]) -> None:
    assert listed(iris, **query) == found


@pytest.mark.parametrize(
    ("offset", "limit", "page", "more"),
    [
        (0, 2, [WELL, TWICE], True),
        (3, 2, [KID, TOP], False),
        (2, 2, [BAD, KID], True),
        (5, 2, [], False),
        (5_000, 1, [], False),
        (-1, 1, [WELL], True),
        (0, 0, [WELL, TWICE, BAD, KID, TOP], False),
        (0, -1, [WELL, TWICE, BAD, KID, TOP], False),
        (0, 501, [WELL, TWICE, BAD, KID, TOP], False),
    ],
)
def test_a_page_says_how_many_there_are_and_whether_more_follow(
    iris: IrisLab, offset: int, limit: int, page: list[str], *, more: bool
) -> None:
    answer = iris("ListJobs", C.ListJobsRequest(query=C.JobQuery(offset=offset, limit=limit)))
    assert ([one.job_id for one in answer.jobs], answer.total_count, answer.has_more) == (page, 5, more)


def test_whose_children_are_listed_has_to_be_said_and_a_list_is_not_read_from_too_far_behind(iris: IrisLab) -> None:
    for query in (C.JobQuery(scope=C.JOB_QUERY_SCOPE_CHILDREN), C.JobQuery(offset=5_001)):
        assert iris.refused("ListJobs", C.ListJobsRequest(query=query)) == "INVALID_ARGUMENT"


def test_states_of_thousands_of_jobs_are_asked_for_at_once_as_its_client_does(iris: IrisLab) -> None:
    unknown = [f"/ann/none{number}" for number in range(9_997)]
    asked = C.GetJobStateRequest(job_ids=[TOP, *unknown, WELL, TOP])
    assert dict(iris("GetJobState", asked).states) == {TOP: job.JOB_STATE_RUNNING, WELL: job.JOB_STATE_SUCCEEDED}
    asked.job_ids.append("/ann/one-more")
    assert iris.refused("GetJobState", asked) == "INVALID_ARGUMENT"


def test_families_are_told_by_lists_and_by_looks_at_one_alike(iris: IrisLab) -> None:
    told = {one.job_id: one for one in iris("ListJobs").jobs}
    for found in (told, {name: iris.status(name) for name in told}):
        assert [name for name, one in found.items() if one.has_children] == [TOP]
        assert {name: one.parent_job_id for name, one in found.items() if one.parent_job_id} == {KID: TOP}
    assert {one.resources.cpu_millicores for one in told.values()} == {10}


def workers(iris: IrisLab, **query: Any) -> controller.Controller.ListWorkersResponse:  # noqa: ANN401 - fields by name
    found: controller.Controller.ListWorkersResponse = iris(
        "ListWorkers", C.ListWorkersRequest(query=C.WorkerQuery(**query))
    )
    return found


@pytest.fixture
def nodes() -> Iterator[IrisLab]:
    """Three nodes, and one of another executor, which was seen later."""
    iris = IrisLab()
    iris.use(
        NodeInfo("n1", Resources(4_900, 8 << 30, 2), labels={"zone": "a"}),
        NodeInfo("n0", Resources(2_000, 1 << 30, 0)),
        NodeInfo("x", Resources(1 << 50, (1 << 63) - 1, 1 << 40)),
    )
    iris.launch("/ann/a", resources={"cpu_millicores": 4_500})
    iris.pass_s(2.0)
    engine = SimulatedEngine(iris.clock, [NodeInfo("a", Resources(1_000, 1 << 30, 0))], script=lambda _: FOREVER)
    Executor("far", engine, iris.transport, clock=iris.clock, lease_s=60.0).step()
    yield iris
    iris.close()


def test_workers_are_the_nodes_and_say_what_they_have_and_run(nodes: IrisLab) -> None:
    far, idle, busy, vast = workers(nodes).workers
    told = busy.metadata
    assert (told.hostname, told.cpu_count, told.memory_bytes, told.gpu_count) == ("n1", 4, 8 << 30, 2)
    most = vast.metadata
    assert (most.cpu_count, most.memory_bytes, most.gpu_count) == ((1 << 31) - 1, (1 << 63) - 1, (1 << 31) - 1)
    assert (told.device.cpu.variant, told.attributes["zone"].string_value) == ("cpu", "a")
    assert [[*one.running_job_ids] for one in (far, idle, busy)] == [[], [], [nodes.id_of("/ann/a")]]
    assert (busy.healthy, busy.status_message, busy.scale_group, busy.backend_id) == (True, "", "local", "default")
    assert (far.scale_group, far.last_heartbeat.epoch_ms) == ("far", round(nodes.clock.now() * 1000))


def test_a_worker_that_gets_no_work_is_not_healthy_and_says_why(nodes: IrisLab) -> None:
    caller = nodes.backend.caller(OWNER, origin="test", request_id="test")
    Nodes(nodes.store, nodes.clock).cordon(caller, "n0")
    told = {one.worker_id: (one.healthy, one.status_message) for one in workers(nodes).workers}
    assert told == {"a": (True, ""), "n0": (False, "cordoned"), "n1": (True, ""), "x": (True, "")}


@pytest.mark.parametrize(
    ("query", "names", "total", "more"),
    [
        ({}, ["a", "n0", "n1", "x"], 4, False),
        ({"contains": "N"}, ["n0", "n1"], 2, False),
        ({"sort_direction": DESC}, ["x", "n1", "n0", "a"], 4, False),
        ({"sort_field": HEARTBEAT}, ["n0", "n1", "x", "a"], 4, False),
        ({"limit": 1}, ["a"], 4, True),
        ({"offset": 1, "limit": 2}, ["n0", "n1"], 4, True),
        ({"offset": 2, "limit": 2}, ["n1", "x"], 4, False),
        ({"offset": 2}, ["n1", "x"], 4, False),
        ({"offset": -1, "limit": 1}, ["a"], 4, True),
    ],
)
def test_workers_are_listed_as_is_asked_for(
    nodes: IrisLab, query: dict[str, Any], names: list[str], total: int, *, more: bool
) -> None:
    found = workers(nodes, **query)
    assert ([one.worker_id for one in found.workers], found.total_count, found.has_more) == (names, total, more)
