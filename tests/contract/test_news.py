"""A controller looks at its database again once anybody else has written to it, and not after its own commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.controller.controller import Controller
from holdfast.domain.job import JobState, Queue
from holdfast.ports.requests import Request, RequestKind
from tests.contract.test_store_contract import submit
from tests.unit.conftest import LoadedDice, VirtualClock

if TYPE_CHECKING:
    from tests.contract.conftest import Place


def test_what_anybody_asks_is_news_and_what_the_controller_commits_itself_is_none(place: Place) -> None:
    store, other = place.open(), place.open()
    submit(store, "j1")
    controller = Controller(
        store, clock=VirtualClock(), dice=LoadedDice(), load_spec=load_spec, controller_epoch="one", settings=None
    )
    assert controller.has_news()
    assert controller.tick().written.handled
    assert not controller.has_news()
    other.append(Request(RequestKind.CANCEL, ("j1",), 1.0))
    assert controller.has_news()
    assert controller.tick().written.jobs["j1"].state is JobState.CANCELLED
    other.put_entry(Queue("gpu"))  # after a commit that was not looked for yet
    assert controller.has_news()
    controller.tick()
    assert not controller.has_news()
