"""What is said of a bulk that is refused: all of it, and a right that is missing once."""

from __future__ import annotations

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.access.grants import Permission, Right
from holdfast.domain.audit import Caller
from holdfast.domain.job import Queue
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Forbidden, InvalidManifest, Problem
from holdfast.service.admission.many import all_of, problems_of
from holdfast.service.submit import Submitter
from tests.unit.conftest import VirtualClock
from tests.unit.jobset_service import Counting
from tools.memory_store import MemoryStore


def _no(message: str = "ann may not") -> Forbidden:
    return Forbidden(message, hint="an admin can grant it")


def test_a_right_that_every_item_lacks_is_the_one_thing_that_is_said() -> None:
    error = all_of({0: _no(), 1: _no(), 2: _no()}, 3)
    assert (type(error), error.message, error.hint, error.problems) == (
        Forbidden,
        "ann may not",
        "an admin can grant it",
        (),
    )


def test_among_other_problems_it_is_listed_once_with_the_items_that_lack_it() -> None:
    wrong = InvalidManifest(problems=[Problem("spec.gang", "must be 1 or more")])
    errors = {0: _no(), 1: wrong, 2: _no(), 3: _no(), 5: _no(), 6: _no("ann may not here")}
    assert [str(one) for one in problems_of(errors)] == [
        "items: ann may not (items 0, 2-3, 5); hint: an admin can grant it",
        "items[1].spec.gang: must be 1 or more",
        "items[6]: ann may not here; hint: an admin can grant it",
    ]
    error = all_of(errors, 7)
    assert (type(error), error.message) == (InvalidManifest, "6 of 7 manifests are not valid; nothing was submitted")


@pytest.mark.parametrize("count", [2, 1000])
def test_a_bulk_for_a_queue_that_is_closed_to_its_sender_is_forbidden(count: int) -> None:
    store = MemoryStore()
    store.put_entry(Queue("gpu", permissions=(Permission(("user:ben",), (Right.SUBMIT,)),)))
    caller = Caller(Principal("ann", roles=(Role.USER,)), 1.0)
    submitter = Submitter(store, VirtualClock(), Counting(), caller=caller)
    with pytest.raises(Forbidden, match="queue gpu allows it only for some") as caught:
        submitter.submit_many([JobSpec(f"j{at}", ("true",), queue="gpu") for at in range(count)])
    assert caught.value.problems == ()
