"""The least that a Python program with Holdfast's processes does for a job of ``/bin/true``: what to judge it by.

A server that commits each job's rows, a process that holds the programs and one supervisor for each of those in flight
pass each job along; each has its directories and its log. Nothing is decided, limited, contained or recovered.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import shutil
import signal
import socket
import sqlite3
import tempfile
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.baseline import IN_FLIGHT, TRUE
from bench.peers import program_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    Message = dict[str, Any]

_SCHEMA = """
pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on;
create table jobs(seq integer primary key autoincrement, id text unique, name text, spec text, state text, at real);
create index jobs_name on jobs(name); create index jobs_state on jobs(state, seq);
create table attempts(job text references jobs(id), number, status, since, created, ended, primary key(job, number));
create table runs(uid text primary key, job text references jobs(id), status, since, node, ended, outcome);
create index runs_job on runs(job);
create table events(seq integer primary key autoincrement, job text references jobs(id), number, type, at, data,
    unique(job, number));
create table history(id text, seq int, phase, before, after, at, primary key(id, seq)) without rowid;
"""
_JOB = "insert into jobs(id, name, spec, state, at) values (?, 'true', 'spec', 'Queued', ?)"
_MOVED = "update jobs set state = ?, at = ? where id = ?"
_ATTEMPT = """insert into attempts values (?, 1, ?, ?, ?, ?) on conflict do update
    set status = excluded.status, since = excluded.since, ended = excluded.ended"""
_RUN = """insert into runs values (?, ?, ?, ?, 'node', ?, ?) on conflict do update
    set status = excluded.status, since = excluded.since, ended = excluded.ended, outcome = excluded.outcome"""
_EVENT = "insert into events(job, number, type, at, data) values (?, ?, 'job.moved', ?, '{\"node\":\"node\"}')"
_STEP = "insert into history values (?, ?, 'PromoteToRunning', 'CREATING', 'RUNNING', ?)"


class Floor(NamedTuple):
    """What it took."""

    per_s: float
    cpu_ms: float
    """Processor time for each job, without the program's own."""
    server_ms: float
    """The committing process's part of it."""


class _Line:
    """One end of a connection on which each line is a message."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._rest = b""

    def say(self, message: Message) -> None:
        self.sock.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def heard(self) -> list[Message]:
        """Wait for messages; none is the end."""
        *lines, self._rest = (self._rest + self.sock.recv(1 << 16)).split(b"\n")
        return list(map(json.loads, lines))


def _supervise(line: _Line) -> None:
    while orders := line.heard():
        for order in orders:
            line.say({"uid": order["uid"], "pid": (pid := _start(order["directory"])), "at": time.monotonic()})
            status = os.waitpid(pid, 0)[1]
            line.say({"uid": order["uid"], "end": {"status": status, "at": time.monotonic()}})


def _start(directory: str) -> int:
    for each in (directory, f"{directory}/checkpoints", f"{directory}/1.0", f"{directory}/1.0/work"):
        os.mkdir(each)  # noqa: PTH102 - as the supervisors do it
    log = os.open(f"{directory}/1.0/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    actions = [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    pid = os.posix_spawn(TRUE, [TRUE], {}, file_actions=actions, setsid=True, setsigdef=[signal.SIGPIPE])
    os.close(log)
    return pid


def _pass_on(server: _Line, supervisors: Sequence[_Line], journal: int) -> None:
    selector, idle = selectors.DefaultSelector(), list(supervisors)
    for line in (server, *supervisors):
        selector.register(line.sock, selectors.EVENT_READ, line)
    while True:
        reports: list[Message] = []
        for key, _ in selector.select():
            said = key.data.heard()
            if key.data is not server:
                reports += said
                idle += [key.data] * sum("end" in one for one in said)
            elif not said:
                return
            for order in said if key.data is server else ():
                os.write(journal, json.dumps(order).encode())
                idle.pop().say(order)
        if reports:
            os.write(journal, json.dumps(reports).encode())
            server.say({"runs": reports})


def _forked(ours: socket.socket, theirs: socket.socket) -> bool:
    """Fork; each side keeps its end. Returns whether this is the child."""
    is_child = os.fork() == 0
    (ours if is_child else theirs).close()
    return is_child


def _hold(line: _Line, folder: str) -> None:
    """Fork the supervisors and pass on what is said."""
    supervisors: list[_Line] = []
    for _ in range(IN_FLIGHT):
        ours, theirs = socket.socketpair()
        if _forked(ours, theirs):
            line.sock.close()
            for other in supervisors:
                other.sock.close()
            _supervise(_Line(theirs))
            os._exit(0)
        supervisors.append(_Line(ours))
    _pass_on(line, supervisors, os.open(f"{folder}/journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    for supervisor in supervisors:
        supervisor.sock.close()
        os.wait()


def _commit(database: sqlite3.Connection, started: Sequence[str], ended: Sequence[Message]) -> None:
    """Write what a job's start and end are to Holdfast, some 18 rows in all."""
    now, over = time.monotonic(), [(one["uid"], json.dumps(one["end"])) for one in ended]
    database.execute("begin immediate")
    moved = [("Running", now, job) for job in started] + [("Succeeded", now, job) for job, _ in over]
    database.executemany(_MOVED, moved)
    database.executemany(_ATTEMPT, [(job, "RUNNING", now, now, None) for job in started])
    database.executemany(_ATTEMPT, [(job, "TERMINATED", now, now, now) for job, _ in over])
    database.executemany(_RUN, [(f"{job}-1", job, "RUNNING", now, None, None) for job in started])
    database.executemany(_RUN, [(f"{job}-1", job, "TERMINATED", now, now, outcome) for job, outcome in over])
    database.executemany(_STEP, [(job, step, now) for job in started for step in range(4)])
    database.executemany(_STEP, [(job, step, now) for job, _ in over for step in range(4, 7)])
    database.executemany(_EVENT, [(job, 2, now) for job in started])
    database.executemany(_EVENT, [(job, number, now) for job, _ in over for number in (3, 4)])
    database.execute("commit")


def _serve(line: _Line, folder: str, count: int) -> None:
    with sqlite3.connect(f"{folder}/database", isolation_level=None) as database:
        database.executescript(_SCHEMA)
        waiting = [f"01m83errzqw8f9d3jtqkk{number:05}" for number in range(count)]
        database.execute("begin")
        database.executemany(_JOB, [(job, time.monotonic()) for job in waiting])
        database.executemany(_EVENT, [(job, 1, time.monotonic()) for job in waiting])
        database.execute("commit")
        ended: list[Message] = []
        done = flying = 0
        while done < count:
            started = [waiting.pop() for _ in range(min(IN_FLIGHT - flying, len(waiting)))]
            _commit(database, started, ended)
            for job in started:
                line.say({"uid": job, "directory": f"{folder}/jobs/{job}"})
            ended = []
            while not ended:
                ended = [run for message in line.heard() for run in message["runs"] if "end" in run]
            done, flying = done + len(ended), flying + len(started) - len(ended)


def measure(count: int = 5000) -> Floor:
    """Pass on so many jobs."""
    program = program_ms()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        os.mkdir(f"{folder}/jobs")  # noqa: PTH102 - as above
        ours, theirs = socket.socketpair()
        if _forked(ours, theirs):
            _hold(_Line(theirs), folder)
            os._exit(0)
        before, began = _spent(), time.perf_counter()
        _serve(_Line(ours), folder, count)
        took = time.perf_counter() - began
        ours.close()
        os.wait()
        now = _spent()
        shutil.rmtree(f"{folder}/jobs")
    server, others = (1000 * (after - earlier) / count for after, earlier in zip(now, before, strict=True))
    return Floor(count / took, server + others - program, server)


def _spent() -> tuple[float, float]:
    own, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime, below.ru_utime + below.ru_stime


if __name__ == "__main__":
    print(measure())
