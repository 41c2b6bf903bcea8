"""Following events over a real socket: what is lost with a connection is resumed, nothing is missed or comes twice."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from itertools import count, islice
from typing import TYPE_CHECKING

import httpx
import pytest
import uvicorn

from holdfast.api.http.serving import streams
from holdfast.api.http.serving.app import Probes, create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.app.time import SortableIds, SystemClock
from holdfast.client import Client
from holdfast.client.events import messages
from holdfast.domain.access import Principal
from holdfast.domain.events.jobs import JobStarted, JobSucceeded
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.job import Job
from holdfast.engines.process.files import ProcessLogs
from holdfast.errors import InvalidRequest, NotFound, Unauthenticated, Unavailable
from holdfast.ports.events import EVERYTHING, EventFilter
from holdfast.ports.store import Changes, Submission
from holdfast.storage.sql import open_store
from tests import databases
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from holdfast.domain.events.registry import StoredEvent
    from holdfast.ports.store import Store
    from holdfast.service.listeners import Listeners

TOKEN = "s3cret"  # noqa: S105 - a test's own
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/event-stream"}
PATIENCE_S = 30.0
_numbers = count(1)


class Served:
    """The API on a port that stays the same when it is stopped and started again."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store, self._folder = store, folder
        self._port = 0
        self._server: uvicorn.Server | None = None
        self._listening: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listening.getsockname()[1]
        self.app = create_app(
            store=self._store,
            clock=SystemClock(),
            ids=SortableIds(),
            logs=ProcessLogs(self._folder),
            entrance=Entrance(Principal("tester"), TOKEN),
            probes=Probes(stopping=lambda: server.should_exit),
        )
        server = uvicorn.Server(uvicorn.Config(self.app, log_config=None, lifespan="off", timeout_graceful_shutdown=5))
        self._server = server
        self._thread = threading.Thread(target=server.run, kwargs={"sockets": [self._listening]}, name="uvicorn")
        self._thread.start()

    def stop(self) -> float:
        """Stop it as SIGTERM does; returns how long that took."""
        began = time.monotonic()
        if self._server is not None and self._thread is not None and self._listening is not None:
            self._server.should_exit = True
            self._thread.join(PATIENCE_S)
            assert not self._thread.is_alive()
            self._listening.close()
            self._server = None
        return time.monotonic() - began

    @property
    def listeners(self) -> int:
        """How many clients follow."""
        found: Listeners = self.app.state.listeners
        return found.count


class Cutter:
    """A line that is cut after so many bytes of each answer, also in the middle of an event."""

    def __init__(self, target: str, after: Callable[[int], int]) -> None:
        self._target = httpx.URL(target)
        self._after = after
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.cuts = 0
        self._far: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, name="cutter")
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                with near, socket.create_connection((self._target.host, self._target.port or 0)) as far:
                    self._far = far
                    far.sendall(near.recv(65536))
                    self._relay(far, near, self._after(self.cuts))
                self.cuts += 1

    @staticmethod
    def _relay(far: socket.socket, near: socket.socket, left: int) -> None:
        far.settimeout(PATIENCE_S)
        with contextlib.suppress(OSError):
            while left > 0 and (data := far.recv(min(left, 4096))):
                near.sendall(data)
                left -= len(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            if self._far is not None:
                self._far.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_S)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(databases.migrated(tmp_path / "holdfast.db"))
    yield opened
    opened.close()


@pytest.fixture
def served(store: Store, tmp_path: Path) -> Iterator[Served]:
    made = Served(store, tmp_path)
    yield made
    made.stop()


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.url, TOKEN) as opened:
        yield opened


def submit(store: Store, number: int = 1) -> list[str]:
    jobs = [Job(f"job-{next(_numbers):06}", "a", "default", 0, 100.0, "{}") for _ in range(number)]
    store.submit(Submission(jobs))
    return [job.id for job in jobs]


def run(store: Store, *job_ids: str) -> None:
    """Write what a controller writes of jobs that run and succeed."""
    changes = Changes(jobs={job.id: job for job in store.jobs_by_id(job_ids)})
    happened = [(job_id, event) for job_id in job_ids for event in (JobStarted(1), JobSucceeded(1))]
    changes.events = {number: EventRecord(job_id, 1.0, event) for number, (job_id, event) in enumerate(happened)}
    store.commit(changes)


def ids(store: Store) -> list[str]:
    return [str(event.seq) for event in store.events(limit=100_000)]


def until(condition: Callable[[], object]) -> None:
    deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "never came to it"
        pause.wait(0.01)


def read(url: str, last: str, number: int, **params: str) -> list[str]:
    """Read so many events and leave in the middle of the stream."""
    headers = {**HEADERS, "Last-Event-ID": last} if last else HEADERS
    with httpx.stream("GET", f"{url}/api/v1/events", headers=headers, params=params, timeout=PATIENCE_S) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        found = (message.last_id for message in messages(response.iter_lines()) if message.data)
        return list(islice(found, number))


def test_a_stream_resumes_after_the_last_event_that_was_read(store: Store, served: Served) -> None:
    run(store, *submit(store, 5))
    first = read(served.url, "", 4)
    run(store, *submit(store, 5))
    rest = read(served.url, first[-1], 26)
    assert first + rest == ids(store)
    assert read(served.url, "", 3, after=first[0]) == (first + rest)[1:4]


def test_what_happens_is_sent_while_the_stream_is_open(store: Store, client: Client) -> None:
    submit(store)
    following = client.events(follow=True)
    assert next(following).type == "dev.holdfast.job.submitted.v1"
    [job_id] = submit(store)
    run(store, job_id)
    seen = list(islice(following, 3))
    assert [event.jobsequence for event in seen] == [1, 2, 3]
    assert {event.subject for event in seen} == {f"jobs/{job_id}"}


def test_a_line_that_is_cut_within_events_loses_and_repeats_nothing(store: Store, served: Served) -> None:
    run(store, *submit(store, 20))
    cutter = Cutter(served.url, lambda cuts: 900 + 237 * (cuts % 7))
    try:
        with Client(cutter.url, TOKEN, pause=lambda _: None) as client:
            seen = [event.id for event in islice(client.events(follow=True), 60)]
    finally:
        cutter.close()
    assert seen == ids(store)
    assert cutter.cuts > 5


def test_following_goes_on_when_the_server_was_away(store: Store, served: Served) -> None:
    run(store, *submit(store, 3))
    seen: list[str] = []
    with Client(served.url, TOKEN) as client:

        def follow() -> None:
            seen.extend(event.id for event in islice(client.events(follow=True), 24))

        follower = threading.Thread(target=follow, name="follower")
        follower.start()
        until(lambda: served.listeners)
        served.stop()
        run(store, *submit(store, 2))
        served.start()
        until(lambda: served.listeners)
        run(store, *submit(store, 3))
        follower.join(PATIENCE_S)
    assert seen == ids(store)


def test_a_server_that_stops_ends_its_streams(store: Store, served: Served, client: Client) -> None:
    submit(store)
    following = client.events(follow=True)
    next(following)
    assert served.listeners == 1
    assert served.stop() < 3


def test_a_client_that_leaves_is_forgotten(store: Store, served: Served) -> None:
    submit(store)
    assert len(read(served.url, "", 1)) == 1
    until(lambda: served.listeners == 0)


def test_a_client_that_does_not_read_holds_up_nobody_and_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STALL_S", 0.5)
    store = MemoryStore()
    served = Served(store, tmp_path)
    try:
        submit(store, 10_000)
        submit(store, 10_000)
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", int(served.url.rpartition(":")[2])))
            lines = ["GET /api/v1/events HTTP/1.1", "Host: x", *(f"{name}: {value}" for name, value in HEADERS.items())]
            deaf.sendall("\r\n".join([*lines, "", ""]).encode())
            until(lambda: served.listeners == 1)
            assert len(read(served.url, "19000", 1000)) == 1000
            until(lambda: served.listeners == 0)
    finally:
        served.stop()


def test_a_filter_chooses_by_job_type_and_queue(store: Store, client: Client) -> None:
    one, other = submit(store, 2)
    run(store, one, other)
    assert [event.subject for event in client.events(job=one)] == [f"jobs/{one}"] * 3
    started = client.events(types=["job.started"], queue="default", follow=True)
    assert [event.subject for event in islice(started, 2)] == [f"jobs/{one}", f"jobs/{other}"]
    assert list(client.events(queue="other")) == []
    assert [event.id for event in client.events(after=client.last_event() - 1)] == [str(client.last_event())]


def test_a_filter_that_never_matches_still_moves_on(
    store: Store, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.1)
    run(store, *submit(store, 2))
    params = {"type": "policy"}
    with httpx.stream("GET", f"{served.url}/api/v1/events", headers=HEADERS, params=params, timeout=10) as response:
        sign = next(messages(response.iter_lines()))
    assert (sign.data, sign.last_id) == ("", str(store.last_event_seq()))


def test_pages_give_the_same_events_as_the_stream(store: Store, served: Served, client: Client) -> None:
    run(store, *submit(store, 4))
    stream = list(islice(client.events(follow=True), 12))
    assert list(client.events()) == stream
    page = httpx.get(f"{served.url}/api/v1/events", headers={**HEADERS, "Accept": "*/*"}, params={"limit": 5}).json()
    assert [event["id"] for event in page["items"]] == [event.id for event in stream[:5]]
    assert (page["next"], page["last"]) == (int(stream[4].id), int(stream[-1].id))


def test_what_cannot_be_followed_is_refused_before_it_begins(served: Served, client: Client) -> None:
    with pytest.raises(NotFound):
        next(client.events(job="nobody", follow=True))
    with pytest.raises(InvalidRequest):
        next(client.events(types=["job.exploded"], follow=True))
    wrong = httpx.get(f"{served.url}/api/v1/events", headers={**HEADERS, "Last-Event-ID": "yesterday"})
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["path"] == "header.Last-Event-ID"
    with Client(served.url, "wrong") as stranger, pytest.raises(Unauthenticated):
        next(stranger.events(follow=True))


def test_of_many_who_come_at_once_only_so_many_follow(served: Served) -> None:
    served.app.state.listeners.most = 5
    together, statuses = threading.Barrier(20), list[int]()

    def follow() -> None:
        with httpx.Client(timeout=PATIENCE_S) as client:
            together.wait()
            with client.stream("GET", f"{served.url}/api/v1/events", headers=HEADERS) as response:
                statuses.append(response.status_code)
                until(lambda: len(statuses) == 20)

    threads = [threading.Thread(target=follow) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(statuses) == [200] * 5 + [503] * 15
    until(lambda: served.listeners == 0)


def test_those_who_only_listen_share_one_look_at_the_store(tmp_path: Path) -> None:
    store = Counted()
    served = Served(store, tmp_path)
    with contextlib.ExitStack() as stack:
        stack.callback(served.stop)
        client = stack.enter_context(httpx.Client(timeout=PATIENCE_S))
        url = f"{served.url}/api/v1/events"
        lines = [stack.enter_context(client.stream("GET", url, headers=HEADERS)).iter_lines() for _ in range(50)]
        assert {next(each) for each in lines} == {"retry: 1000"}
        until(lambda: store.reads >= 50)
        before, looks = store.reads, store.looks
        until(lambda: store.looks >= looks + 8)
        assert store.reads == before
        submit(store)
        until(lambda: store.reads == before + 50)
        assert all(any("job.submitted" in line for line in islice(each, 6)) for each in lines)


class Counted(MemoryStore):
    """Counts who reads events, and who only asks for the newest one."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = self.looks = 0

    def events(self, *, after: int = 0, limit: int, where: EventFilter = EVERYTHING) -> Sequence[StoredEvent]:
        self.reads += 1
        return super().events(after=after, limit=limit, where=where)

    def last_event_seq(self) -> int:
        self.looks += 1
        return super().last_event_seq()


def test_only_so_many_can_follow_and_the_rest_is_told_so(served: Served, client: Client) -> None:
    served.app.state.listeners.most = 0
    waits: list[float] = []
    client._connection.pause = waits.append  # noqa: SLF001 - time is not to pass here
    with pytest.raises(Unavailable, match="follow events already"):
        next(client.events(follow=True))
    assert sum(waits) >= 60
    assert served.listeners == 0
