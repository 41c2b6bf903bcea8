"""Launches: jobs that come one by one, each in a request of its own, and are stored together.

What came while the last ones were stored is stored next, in one transaction: a commit costs as much for a hundred jobs
as for one. Where several launch at a time, who was just answered is waited for a moment. They are read together, too,
by what operators wrote as it is then.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from holdfast.domain.job import JOB_TERMINAL
from holdfast.domain.record import Struct, evolve
from holdfast.errors import AlreadyExists, Conflict, HoldfastError, Unavailable
from holdfast.service.operations.submissions import Submissions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Node
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.names import ExternalName, NamedJob
    from holdfast.service.operations.backend import Backend
    from holdfast.service.submit import ItemOutcome, WrittenJob

MOST_TOGETHER = 1_000
"""Jobs in one transaction."""
_LINGER_S, _LONGEST_LINGER_S = 0.004, 0.04
"""How long to wait for those who launched at about the same time before."""
_VAIN = 8
"""How many times nobody is waited for after nobody came."""
_PART = 4
"""Where storing takes long, it is one of so many parts of that: who comes too late waits for all of it."""
_NODES_S = 1.0
_log = logging.getLogger(__name__)


class _Launch(Struct, frozen=True):
    """Somebody who waits for the job of a request."""

    caller: Caller
    written: WrittenJob
    external: ExternalName
    answer: Future[str]


class _Call(Struct, frozen=True):
    """A request that has yet to be read, which ends in a launch."""

    read: Callable[[], Any]
    answer: Future[Any]

    def begin(self) -> None:
        """Read it, and answer what becomes of it, now or later."""
        if not self.answer.set_running_or_notify_cancel():
            return  # nobody waits any more
        try:
            self._follow(self.read())
        except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it
            self.answer.set_exception(error)

    def _follow(self, answer: object) -> None:
        if isinstance(answer, Future):
            answer.add_done_callback(self._came)
        else:
            self.answer.set_result(answer)

    def _came(self, future: Future[Any]) -> None:
        error = future.exception()
        if error is None:
            self._follow(future.result())
        else:
            self.answer.set_exception(error)


class Launches:
    """Stores what is launched, in a thread of its own."""

    def __init__(
        self, backend: Backend, door: str, *, again_s: float, written: Callable[[], None] = lambda: None
    ) -> None:
        """Begin to wait for launches.

        Args:
            backend: What stores them.
            door: By which they come; its thread is named after it.
            again_s: How long a launch that is sent again is answered as the first time, in place of a name that is
                taken: its caller may have lost the answer.
            written: Told after each transaction.
        """
        self.snapshot = LaunchSnapshot(backend)
        self._backend = backend
        self._again_s = again_s
        self._written = written
        self._waiting: deque[_Launch | _Call | None] = deque()
        self._enough = threading.Event()
        self._wake_count = 1
        """How many are waited for; fewer wake nobody."""
        self._linger_s, self._vain = _LINGER_S, 0
        self._begun: list[_Launch] = []
        """What is stored next; used by the thread alone."""
        self._thread = threading.Thread(target=self._work, name=f"{door}-launches", daemon=True)
        self._thread.start()

    def launch(self, caller: Caller, written: WrittenJob, external: ExternalName) -> Future[str]:
        """Submit a job under a name of its own, and answer with its id once it is stored.

        The answer raises what ``Submissions.submit`` does, and ``AlreadyExists`` where the name is taken.
        """
        begun = _Launch(caller, evolve(written, external=external, caller=caller), external, Future())
        if self.is_here():
            self._begun.append(begun)
        else:
            self._put(begun)
        return begun.answer

    def submit(self, read: Callable[[], Any]) -> Future[Any]:
        """Have a request read that ends in a launch; a future that is its result is followed.

        It is done in the thread that stores: what may take long is to be done elsewhere, see ``is_here``.
        """
        call = _Call(read, Future())
        self._put(call)
        return call.answer

    def _put(self, launch: _Launch | _Call | None) -> None:
        self._waiting.append(launch)
        if launch is None or len(self._waiting) >= self._wake_count:
            self._enough.set()

    def is_here(self) -> bool:
        """Whether this is the thread that stores, for which others wait."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Store what waits, and nothing after that."""
        self._put(None)
        self._thread.join()

    def _work(self) -> None:
        going_on, before, last = True, 0, 0
        while going_on:
            together = self._next(before + last)
            before, last = last, len(together)
            going_on = together[-1] is not None
            began = monotonic()
            self._do([item for item in together if item is not None])
            self._linger_s = min(max(_LINGER_S, (monotonic() - began) / _PART), _LONGEST_LINGER_S)
        while self._waiting:
            left = self._waiting.popleft()
            if left is not None:
                left.answer.set_exception(Unavailable("the server is about to stop"))

    def _next(self, expected: int) -> list[_Launch | _Call | None]:
        """Return what is stored next, waiting a moment for so many as launch at a time."""
        self._wake_count = 1
        while not self._waiting:
            self._enough.wait()
            self._enough.clear()
        self._vain -= 1
        if len(self._waiting) < expected and self._vain < 0:
            self._linger(min(expected, MOST_TOGETHER))
        together: list[_Launch | _Call | None] = []
        while self._waiting and len(together) < MOST_TOGETHER and (not together or together[-1] is not None):
            together.append(self._waiting.popleft())
        return together

    def _linger(self, expected: int) -> None:
        """Wait a moment for others, unless nobody came lately: who launches alone is not to wait for each."""
        count, self._wake_count = len(self._waiting), expected
        self._enough.clear()
        if len(self._waiting) < expected:
            self._enough.wait(self._linger_s)
        if len(self._waiting) == count:
            self._vain = _VAIN

    def _do(self, together: Sequence[_Launch | _Call]) -> None:
        """Read and store what has come, by what operators had written when the last of it had."""
        try:
            with self.snapshot.held() as catalogue:
                launched = self._read(together)
                for some in _by_caller(launched):
                    self._store(some, catalogue)
        except HoldfastError as error:  # nobody knows what was written
            for item in together:
                _answer(item.answer, error)
            return
        if launched:
            self._written()

    def _read(self, together: Sequence[_Launch | _Call]) -> Sequence[_Launch]:
        for item in together:
            if isinstance(item, _Call):
                item.begin()
            else:
                self._begun.append(item)
        launched, self._begun = self._begun, []
        return launched

    def _store(self, launched: Sequence[_Launch], catalogue: Catalogue) -> None:
        """Store what one caller launched, and answer; children after parents that are launched with them."""
        own = {launch.external.name for launch in launched}
        if children := [launch for launch in launched if launch.external.parent in own]:
            self._store([launch for launch in launched if launch.external.parent not in own], catalogue)
            self._store(children, catalogue)
            return
        try:
            written = self._with_parents(launched)
            submissions, caller = Submissions(self._backend), launched[0].caller
            outcomes = submissions.submit_many(caller, written, atomic=False, catalogue=catalogue)
            both = zip(launched, outcomes, strict=True)
            names = [launch.external.name for launch, outcome in both if outcome.created is None or not outcome.is_new]
            holders = self._backend.store.named(names) if names else {}
        except HoldfastError as error:
            if len(launched) == 1:
                _answer(launched[0].answer, error)
            else:
                for launch in launched:  # what is wrong with one of them is not the others'
                    self._store([launch], catalogue)
        except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it
            _log.exception("launches failed")
            for launch in launched:
                _answer(launch.answer, error)
        else:
            for launch, outcome in zip(launched, outcomes, strict=True):
                _answer(launch.answer, self._became(launch, outcome, holders))

    def _with_parents(self, launched: Sequence[_Launch]) -> list[WrittenJob | HoldfastError]:
        """Return what is to be stored: children with their parents, and why not where those have ended."""
        named = {launch.external.parent for launch in launched if launch.external.parent}
        if not named:
            return [launch.written for launch in launched]
        parents = self._backend.store.named([*named])
        if not parents:
            return [launch.written for launch in launched]
        states = self._backend.store.job_states([launch.job_id for launch in parents.values()])
        jobs: list[WrittenJob | HoldfastError] = []
        for launch in launched:
            parent = parents.get(launch.external.parent)
            of_parent = None if parent is None else states.get(parent.job_id)
            if parent is None or of_parent is None:
                jobs.append(launch.written)
            elif of_parent.state in JOB_TERMINAL:
                name = launch.external.parent.partition("/")[2]
                message = f"its parent, job {name!r}, has ended ({of_parent.state}): it has no children any more"
                jobs.append(Conflict(message))
            else:
                jobs.append(evolve(launch.written, parent=parent.job_id))
        return jobs

    def _became(self, launch: _Launch, outcome: ItemOutcome, holders: Mapping[str, NamedJob]) -> str | HoldfastError:
        """Say what became of a launch: the id of its job, maybe from an earlier time, or why it has none."""
        if outcome.created is not None and outcome.is_new:
            return outcome.created.id
        holder = holders.get(launch.external.name)
        now = self._backend.clock.now()
        if holder is not None and holder.digest == launch.external.digest and now - holder.taken_at <= self._again_s:
            return holder.job_id
        if outcome.error is not None:
            return outcome.error
        name = launch.external.name.partition("/")[2]
        hint = "a job keeps its name until it is deleted by retention or `holdfast db prune`; choose another"
        return AlreadyExists(f"job {name!r} exists already", hint=hint)


class LaunchSnapshot:
    """What launches are read by: what operators wrote, as it is now, and the nodes of about now.

    Reading all of it for each launch would cost more than the launch.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._catalogue: Catalogue | None = None
        self._nodes: tuple[float, Sequence[Node]] | None = None
        self._holding = threading.local()

    @contextmanager
    def held(self) -> Iterator[Catalogue]:
        """Within it, this thread takes what operators wrote to be what it was at the beginning."""
        held = self._holding.catalogue = self.catalogue()
        try:
            yield held
        finally:
            self._holding.catalogue = None

    def catalogue(self) -> Catalogue:
        """Return what operators wrote."""
        held: Catalogue | None = getattr(self._holding, "catalogue", None)
        if held is not None:
            return held
        current, version = self._catalogue, self._backend.store.catalogue_version()
        if current is None or current.version != version:
            current = self._catalogue = self._backend.store.catalogue()
        return current

    def nodes(self) -> Sequence[Node]:
        """Return where jobs run, as it was a second ago at most."""
        cached, now = self._nodes, self._backend.clock.now()
        if cached is None or not 0 <= now - cached[0] < _NODES_S:
            cached = self._nodes = now, self._backend.store.nodes()
        return cached[1]


def _by_caller(launched: Iterable[_Launch]) -> Iterable[Sequence[_Launch]]:
    """Divide what is stored together by whose it is."""
    groups: list[list[_Launch]] = []
    for launch in launched:
        same = next((some for some in groups if some[0].caller.principal == launch.caller.principal), None)
        if same is None:
            groups.append([launch])
        else:
            same.append(launch)
    return groups


def _answer(waiting: Future[str], answer: str | BaseException) -> None:
    if not waiting.set_running_or_notify_cancel():
        return  # nobody waits any more
    if isinstance(answer, str):
        waiting.set_result(answer)
    else:
        waiting.set_exception(answer)
