"""What of each place is in use: charged once, given back once, whatever is repeated."""

from __future__ import annotations

from holdfast.domain.job import Resources, Run
from holdfast.domain.placement.fit import Capacity, Place

RUN = Run("job-1-0-1", "job", 1, 0, executor="e", node="n", request=Resources(1000))
PLACE = ("e", "n")


def test_a_run_is_charged_and_given_back_once_however_often_that_is_said() -> None:
    capacity = Capacity()
    capacity.set_place(Place(PLACE, Resources(4000)))
    for _ in range(2):
        capacity.charge(RUN, "queue")
        assert (capacity.free[PLACE], capacity.usage["queue"].resources) == (Resources(3000), Resources(1000))
    assert [capacity.release(RUN.uid), capacity.release(RUN.uid)] == [True, False]
    assert (capacity.free[PLACE], capacity.usage["queue"].resources) == (Resources(4000), Resources(0))


def test_a_place_that_changes_keeps_what_runs_on_it() -> None:
    capacity = Capacity()
    capacity.set_place(Place(PLACE, Resources(4000)))
    capacity.charge(RUN, "queue")
    capacity.set_place(Place(PLACE, Resources(2000)))
    assert capacity.free[PLACE] == Resources(1000)
    capacity.drop_places("e")
    capacity.set_place(Place(PLACE, Resources(4000)))
    assert capacity.free[PLACE] == Resources(3000)
