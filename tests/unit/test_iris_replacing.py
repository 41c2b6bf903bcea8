"""A name by Iris' door is given to another job only together with a job: what is refused has ended nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from holdfast.api.iris._generated import job
from tests.unit.conftest import exits
from tests.unit.iris_lab import FOREVER, IrisLab

if TYPE_CHECKING:
    from collections.abc import Iterator

OLD, KID = "/ann/x", "/ann/x/kid"
RECREATE = job.EXISTING_JOB_POLICY_RECREATE


@pytest.fixture
def iris() -> Iterator[IrisLab]:
    """A job that runs, and its child."""
    iris = IrisLab()
    assert (iris.launch(OLD), iris.launch(KID)) == ("OK", "OK")
    iris.pass_s(5.0)
    yield iris
    iris.close()


def test_a_refused_replacement_leaves_the_job_and_its_children_running(iris: IrisLab) -> None:
    before = iris.id_of(OLD)
    assert iris.launch(OLD, bundle_blob=b"no archive, and nowhere to keep one", existing_job_policy=RECREATE) != "OK"
    iris.pass_s(30.0)
    assert (iris.id_of(OLD), iris.state(OLD), iris.state(KID)) == (before, "RUNNING", "RUNNING")


def test_of_equal_replacements_at_one_moment_one_is_stored_and_ends_the_job_once(iris: IrisLab) -> None:
    before, child = iris.id_of(OLD), iris.id_of(KID)
    with ThreadPoolExecutor(4) as threads:
        answers = [*threads.map(lambda _: iris.launch(OLD, existing_job_policy=RECREATE), range(4))]
    assert answers == ["OK"] * 4
    assert sorted(key for one in iris.store.requests(limit=9) for key in one.targets) == sorted(
        [before, child, iris.id_of(OLD)]
    )
    iris.pass_s(60.0)
    assert iris.launch(OLD, existing_job_policy=RECREATE) == "OK", "sent again"
    assert iris.state(OLD) == "RUNNING"


def test_a_replacement_that_is_stored_ends_the_job_and_its_children(iris: IrisLab) -> None:
    before, child = iris.id_of(OLD), iris.id_of(KID)
    assert (
        iris.launch(OLD, lambda order: exits(0) if order.job_id != before else FOREVER, existing_job_policy=RECREATE)
        == "OK"
    )
    assert iris.id_of(OLD) != before
    iris.pass_s(60.0)
    assert iris.state(OLD) == "SUCCEEDED"
    assert {str(one.state) for one in iris.store.job_states([before, child]).values()} == {"Cancelled"}
