"""Launches: jobs that come one by one, each in a request of its own, and are stored together.

What came while the last ones were stored is stored next, in one transaction: a commit costs as much for a hundred jobs
as for one. Where several launch at a time, who was just answered is waited for a moment.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from holdfast.domain.job import JOB_TERMINAL
from holdfast.domain.record import Struct, evolve
from holdfast.errors import AlreadyExists, Conflict, HoldfastError, Unavailable
from holdfast.service.operations.submissions import Submissions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Node
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.names import ExternalName, NamedJob
    from holdfast.service.operations.backend import Backend
    from holdfast.service.submit import ItemOutcome, Written

MOST_TOGETHER = 1_000
"""Jobs in one transaction."""
_LINGER_S = 0.002
"""How long to wait for the next one of those who launched at about the same time before."""
_NODES_S = 1.0
_log = logging.getLogger(__name__)


class _Launch(Struct, frozen=True):
    """Somebody who waits for the job of a request."""

    caller: Caller
    written: Written
    external: ExternalName
    answer: Future[str]


class Launches:
    """Stores what is launched, in a thread of its own."""

    def __init__(self, backend: Backend, *, again_s: float) -> None:
        """Begin to wait for launches.

        Args:
            backend: What stores them.
            again_s: How long a launch that is sent again is answered as the first time, in place of a name that is
                taken: its caller may have lost the answer.
        """
        self._backend = backend
        self._again_s = again_s
        self._waiting: SimpleQueue[_Launch | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="launches", daemon=True)
        self._thread.start()

    def launch(self, caller: Caller, written: Written, external: ExternalName) -> Future[str]:
        """Submit a job under a name of its own, and answer with its id once it is stored.

        The answer raises what ``Submissions.submit`` does, and ``AlreadyExists`` where the name is taken.
        """
        found = _Launch(caller, evolve(written, external=external, by=caller), external, Future())
        self._waiting.put(found)
        return found.answer

    def close(self) -> None:
        """Store what waits, and nothing after that."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        going_on, before, last = True, 0, 0
        while going_on:
            together = self._next(before + last)
            before, last = last, len(together)
            going_on = together[-1] is not None
            launched = [one for one in together if one is not None]
            for some in _by_caller(launched):
                self._store(some)
        while not self._waiting.empty():
            left = self._waiting.get()
            if left is not None:
                left.answer.set_exception(Unavailable("the server is about to stop"))

    def _next(self, expected: int) -> list[_Launch | None]:
        """Return what is stored next, waiting a moment for so many as launch at a time."""
        together = [self._waiting.get()]
        with suppress(Empty):
            while together[-1] is not None and len(together) < MOST_TOGETHER:
                missing = len(together) < expected
                together.append(self._waiting.get(timeout=_LINGER_S) if missing else self._waiting.get_nowait())
        return together

    def _store(self, launched: Sequence[_Launch]) -> None:
        """Store what one caller launched, and answer; children after parents that are launched with them."""
        own = {one.external.name for one in launched}
        if children := [one for one in launched if one.external.parent in own]:
            self._store([one for one in launched if one.external.parent not in own])
            self._store(children)
            return
        try:
            written = self._with_parents(launched)
            outcomes = Submissions(self._backend).submit_many(launched[0].caller, written, atomic=False)
            taken = self._backend.store.named([one.external.name for one in launched])
        except HoldfastError as error:
            if len(launched) == 1:
                _answer(launched[0], error)
            else:
                for one in launched:  # what is wrong with one of them is not the others'
                    self._store([one])
        except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it
            _log.exception("launches failed")
            for one in launched:
                _answer(one, error)
        else:
            for one, outcome in zip(launched, outcomes, strict=True):
                _answer(one, self._became(one, outcome, taken))

    def _with_parents(self, launched: Sequence[_Launch]) -> list[Written | HoldfastError]:
        """Return what is to be stored: children with their parents, and why not where those have ended."""
        named = {one.external.parent for one in launched if one.external.parent}
        if not named:
            return [one.written for one in launched]
        known = self._backend.store.named([*named])
        states = self._backend.store.job_states([one.job_id for one in known.values()])
        found: list[Written | HoldfastError] = []
        for one in launched:
            parent = known.get(one.external.parent)
            state = None if parent is None else states.get(parent.job_id)
            if parent is None or state is None:
                found.append(one.written)
            elif state in JOB_TERMINAL:
                name = one.external.parent.partition("/")[2]
                told = f"its parent, job {name!r}, has ended ({state}): it has no children any more"
                found.append(Conflict(told))
            else:
                found.append(evolve(one.written, parent=parent.job_id))
        return found

    def _became(self, one: _Launch, outcome: ItemOutcome, taken: Mapping[str, NamedJob]) -> str | HoldfastError:
        """Say what became of a launch: the id of its job, maybe from an earlier time, or why it has none."""
        there = taken.get(one.external.name)
        now = self._backend.clock.now()
        if there is not None and there.digest == one.external.digest and now - there.taken_at <= self._again_s:
            return there.job_id
        if outcome.error is not None:
            return outcome.error
        name = one.external.name.partition("/")[2]
        hint = "names of jobs that have ended stay theirs until they are deleted; choose another"
        return AlreadyExists(f"job {name!r} exists already", hint=hint)


class Known:
    """What launches are read by: what operators wrote, as it is now, and the nodes of about now.

    Reading all of it for each launch would cost more than the launch.
    """

    def __init__(self, backend: Backend) -> None:
        """Begin with nothing known."""
        self._backend = backend
        self._catalogue: Catalogue | None = None
        self._nodes: tuple[float, Sequence[Node]] | None = None

    def catalogue(self) -> Catalogue:
        """Return what operators wrote."""
        known, version = self._catalogue, self._backend.store.catalogue_version()
        if known is None or known.version != version:
            known = self._catalogue = self._backend.store.catalogue()
        return known

    def nodes(self) -> Sequence[Node]:
        """Return where jobs run, as it was a second ago at most."""
        known, now = self._nodes, self._backend.clock.now()
        if known is None or not 0 <= now - known[0] < _NODES_S:
            known = self._nodes = now, self._backend.store.nodes()
        return known[1]


def _by_caller(launched: Iterable[_Launch]) -> Iterable[Sequence[_Launch]]:
    """Divide what is stored together by whose it is."""
    found: list[list[_Launch]] = []
    for one in launched:
        same = next((some for some in found if some[0].caller.principal == one.caller.principal), None)
        if same is None:
            found.append([one])
        else:
            same.append(one)
    return found


def _answer(one: _Launch, answer: str | BaseException) -> None:
    if not one.answer.set_running_or_notify_cancel():
        return  # nobody waits any more
    if isinstance(answer, str):
        one.answer.set_result(answer)
    else:
        one.answer.set_exception(answer)
