"""Launches: jobs that come one by one, each in a request of its own, and are stored together.

Launches that arrive during a commit are stored by the next one, in one transaction: a commit costs as much for a
hundred jobs as for one. When several clients launch at once, the thread waits briefly for those just answered: their
next launches can share the commit. Launches of one commit are also read together, with one version of the catalogue.
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
"""How long to wait for the clients that launched at about the same time before."""
_VAIN = 8
"""How many commits are made without waiting after a wait was in vain."""
_PART = 4
"""The wait is a slow commit's time divided by this, as a launch that misses the commit waits for all of the next."""
_NODES_S = 1.0
_log = logging.getLogger(__name__)


class _Launch(Struct, frozen=True):
    """A launch whose caller waits for the job's id."""

    caller: Caller
    written: WrittenJob
    external: ExternalName
    answer: Future[str]


class _Call(Struct, frozen=True):
    """A request that is still to be read, and ends in a launch."""

    read: Callable[[], Any]
    answer: Future[Any]

    def begin(self) -> None:
        """Read the request, and answer with its result, now or once that is known."""
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
        """Start the thread.

        Args:
            backend: Stores the jobs.
            door: The door's name, for the thread's name.
            again_s: How long a repeated launch gets the first answer instead of an error that its name is taken: its
                caller may have lost the answer.
            written: Told after each transaction.
        """
        self.snapshot = LaunchSnapshot(backend)
        self._backend = backend
        self._again_s = again_s
        self._written = written
        self._waiting: deque[_Launch | _Call | None] = deque()
        self._enough = threading.Event()
        self._wake_count = 1
        """How many launches to wait for; fewer do not wake the thread."""
        self._linger_s, self._vain = _LINGER_S, 0
        self._begun: list[_Launch] = []
        """The launches to store next; used only by the thread."""
        self._thread = threading.Thread(target=self._work, name=f"{door}-launches", daemon=True)
        self._thread.start()

    def launch(self, caller: Caller, written: WrittenJob, external: ExternalName) -> Future[str]:
        """Submit a job under a unique name; the future has its id once it is stored.

        The future raises what ``Submissions.submit`` does, and ``AlreadyExists`` if the name is taken.
        """
        begun = _Launch(caller, evolve(written, external=external, caller=caller), external, Future())
        if self.is_here():
            self._begun.append(begun)
        else:
            self._put(begun)
        return begun.answer

    def submit(self, read: Callable[[], Any]) -> Future[Any]:
        """Read a request that ends in a launch, in the thread; if the result is a future, wait for that.

        Slow work must be done elsewhere, as it delays all launches; see ``is_here``.
        """
        call = _Call(read, Future())
        self._put(call)
        return call.answer

    def _put(self, launch: _Launch | _Call | None) -> None:
        self._waiting.append(launch)
        if launch is None or len(self._waiting) >= self._wake_count:
            self._enough.set()

    def is_here(self) -> bool:
        """Whether the caller runs in the storing thread, which must not be delayed."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Store the waiting launches, and then stop."""
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
        """Return the next launches to store; waits briefly for as many as ``expected``."""
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
        """Wait briefly for more launches, unless an earlier wait was in vain: a single client need not wait."""
        count, self._wake_count = len(self._waiting), expected
        self._enough.clear()
        if len(self._waiting) < expected:
            self._enough.wait(self._linger_s)
        if len(self._waiting) == count:
            self._vain = _VAIN

    def _do(self, together: Sequence[_Launch | _Call]) -> None:
        """Read and store launches with the catalogue as of now, which is after the last of them arrived."""
        try:
            with self.snapshot.held() as catalogue:
                launched = self._read(together)
                for some in _by_caller(launched):
                    self._store(some, catalogue)
        except HoldfastError as error:  # the catalogue cannot be read
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
        """Store the launches of one caller and answer them; children after parents that are launched with them."""
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
                for launch in launched:  # an error of one must not fail the others
                    self._store([launch], catalogue)
        except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it
            _log.exception("launches failed")
            for launch in launched:
                _answer(launch.answer, error)
        else:
            for launch, outcome in zip(launched, outcomes, strict=True):
                _answer(launch.answer, self._became(launch, outcome, holders))

    def _with_parents(self, launched: Sequence[_Launch]) -> list[WrittenJob | HoldfastError]:
        """Set the parents of children; those whose parents have ended become errors."""
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
                message = f"its parent, job {name!r}, has ended ({of_parent.state}), and can have no more children"
                jobs.append(Conflict(message))
            else:
                jobs.append(evolve(launch.written, parent=parent.job_id))
        return jobs

    def _became(self, launch: _Launch, outcome: ItemOutcome, holders: Mapping[str, NamedJob]) -> str | HoldfastError:
        """Return the id of a launch's job, which may be an earlier one, or the launch's error."""
        if outcome.created is not None and outcome.is_new:
            return outcome.created.id
        holder = holders.get(launch.external.name)
        now = self._backend.clock.now()
        if holder is not None and holder.digest == launch.external.digest and now - holder.taken_at <= self._again_s:
            return holder.job_id
        if outcome.error is not None:
            return outcome.error
        name = launch.external.name.partition("/")[2]
        hint = "a job keeps its name until retention or `holdfast db prune` deletes it; choose another name"
        return AlreadyExists(f"job {name!r} exists already", hint=hint)


class LaunchSnapshot:
    """The current catalogue, and the nodes as of a second ago at most.

    Reading them for each launch would cost more than the launch.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._catalogue: Catalogue | None = None
        self._nodes: tuple[float, Sequence[Node]] | None = None
        self._holding = threading.local()

    @contextmanager
    def held(self) -> Iterator[Catalogue]:
        """Keep this thread's catalogue fixed until the context ends."""
        held = self._holding.catalogue = self.catalogue()
        try:
            yield held
        finally:
            self._holding.catalogue = None

    def catalogue(self) -> Catalogue:
        """Return the current catalogue, or the one that this thread holds."""
        held: Catalogue | None = getattr(self._holding, "catalogue", None)
        if held is not None:
            return held
        current, version = self._catalogue, self._backend.store.catalogue_version()
        if current is None or current.version != version:
            current = self._catalogue = self._backend.store.catalogue()
        return current

    def nodes(self) -> Sequence[Node]:
        """Return the nodes, as of a second ago at most."""
        cached, now = self._nodes, self._backend.clock.now()
        if cached is None or not 0 <= now - cached[0] < _NODES_S:
            cached = self._nodes = now, self._backend.store.nodes()
        return cached[1]


def _by_caller(launched: Iterable[_Launch]) -> Iterable[Sequence[_Launch]]:
    """Group launches by their callers."""
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
