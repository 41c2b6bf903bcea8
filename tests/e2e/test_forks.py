"""Processes that were forked from one that has a client use it, too: each by connections of its own."""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval
from typing import TYPE_CHECKING

import pytest

from tests.e2e.fluster_stage import FlusterServer

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGIN = """
import asyncio, multiprocessing, os, signal, sys, threading
from concurrent.futures import ProcessPoolExecutor
import holdfast

fork = multiprocessing.get_context("fork")
client = holdfast.Client.from_env()

def forked(function):
    if (child := os.fork()) == 0:
        signal.alarm(30)
        try:
            function()
            sys.stdout.flush()
        except BaseException as error:
            os.write(1, repr(error).encode())
        os._exit(0)
    return child
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlusterServer]:
    server = FlusterServer(tmp_path_factory.mktemp("forks"))
    server.open()
    yield server
    server.clean_up()


def printed(server: FlusterServer, program: str, *, data: str = "") -> str:
    """Run a program that has a client; returns what its processes print."""
    environ = {**server.environ, **({"HOLDFAST_DATA": data} if data else {})}
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN + program, str(server.address()["url"]), str(server.address()["pid"])],
        env={**environ, "HOLDFAST_TOKEN": "", "PYTHONWARNINGS": "ignore::DeprecationWarning"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_each_of_many_forked_processes_gets_the_answers_to_its_own_requests(server: FlusterServer) -> None:
    program = """
def work(number):
    job = client.submit(["true"], name=f"part-{number}")
    return job.view().name == client.job(job.id).name == f"part-{number}"

client.submit(["true"], name="prepare").wait()
with fork.Pool(4) as pool:
    print(all(pool.imap_unordered(work, range(40))), work(40))
"""
    assert printed(server, program) == "True True\n"


def test_a_request_that_another_thread_waits_for_at_the_fork_keeps_nobody(server: FlusterServer) -> None:
    program = """
server, answers = int(sys.argv[2]), []
client.api.version()
os.kill(server, signal.SIGSTOP)
thread = threading.Thread(target=lambda: answers.append(client.submit(["true"], name="of-the-parent").view().name))
thread.start()
while not client.api.connection._lock.locked():
    pass
try:
    child = forked(lambda: print(client.submit(["true"], name="of-the-child").view().name))
finally:
    os.kill(server, signal.SIGCONT)
os.waitpid(child, 0)
thread.join()
print(*answers, flush=True)
"""
    assert printed(server, program) == "of-the-child\nof-the-parent\n"


def test_events_that_were_followed_before_a_fork_come_whole_to_both_processes(server: FlusterServer) -> None:
    program = """
job = client.submit(["sleep", "60"], name="followed")
stream = client.api.events(follow=True, job=job.id)
before = [next(stream).type, next(stream).type]

def rest():
    types = [next(stream).type]
    while "cancelled" not in types[-1]:
        types.append(next(stream).type)
    return types

os.waitpid(forked(lambda: print([job.cancel(), *rest()])), 0)
print([*before, None, *rest()], flush=True)
"""
    of_child, of_parent = map(literal_eval, printed(server, program).splitlines())
    assert of_parent[2:] == of_child


def test_futures_belong_to_the_process_that_submitted_them_and_both_go_on(server: FlusterServer) -> None:
    program = """
executor = holdfast.Executor(client)
packed = holdfast.PackedExecutor(client, calls_per_job=2, window_s=0.01)
gate = os.path.join(os.environ["HOLDFAST_DATA"], "gate")
os.mkfifo(gate)
earlier = [executor.submit(lambda: open(gate).read()), packed.submit(abs, -1), packed.submit(abs, -2)]
loose = packed.submit(abs, -3)

def child():
    for future in (*earlier[:1], loose):
        try:
            future.result(20)
        except RuntimeError as error:
            print(error)
    print(executor.submit(abs, -4).result(20), packed.submit(abs, -5).result(20), flush=True)

os.waitpid(forked(child), 0)
open(gate, "w").write("six")
print(*(future.result() for future in (*earlier, loose)), executor.submit(abs, -7).result(), flush=True)
executor.shutdown()
packed.shutdown()
"""
    refusal = "the call's result goes to the process that this one was forked from"
    assert printed(server, program) == f"{refusal}\n{refusal}\n4 5\nsix 1 2 3 7\n"


def test_a_client_on_an_event_loop_is_used_in_forked_processes(server: FlusterServer) -> None:
    program = """
async def names(client, number):
    job = await client.submit(["true"], name=f"aside-{number}")
    return (await job.view()).name == f"aside-{number}" and await job.wait()

def work(number):
    return asyncio.run(names(ours, number))

async def main():
    await names(ours, 0)
    with ProcessPoolExecutor(3, mp_context=fork) as pool:
        loop = asyncio.get_running_loop()
        of_children = [loop.run_in_executor(pool, work, number) for number in range(1, 7)]
        print({*await asyncio.gather(*of_children, *(names(ours, number) for number in range(7, 13)))})

ours = holdfast.AsyncClient(client)
asyncio.run(main())
"""
    assert printed(server, program) == "{'Succeeded'}\n"


def test_clients_of_the_cluster_are_used_in_forked_processes(server: FlusterServer) -> None:
    program = """
from holdfast.fluster import Entrypoint, RpcClusterClient, cluster_pb2
cluster = RpcClusterClient(sys.argv[1])
small = cluster_pb2.ResourceSpec(cpu=0, memory="256m")

def work(number):
    name = cluster.submit(Entrypoint.from_callable(abs, -number), f"of-{number}", small)
    return name == f"of-{number}" == cluster.status(name).job_id

work(0)
with fork.Pool(4) as pool:
    print(all(pool.imap_unordered(work, range(1, 20))), work(20))
"""
    assert printed(server, program) == "True True\n"


def test_without_a_server_a_forked_process_is_refused_and_ends_nothing(server: FlusterServer) -> None:
    program = """
def child():
    for use in (client.api.version, holdfast.Client.from_env):
        try:
            use()
        except holdfast.errors.Conflict as error:
            print(error.message.partition(" from ")[0])
    client.close()

os.waitpid(forked(child), 0)
print(client.submit(["true"]).wait())
"""
    said = "this process was forked\n"
    data = str(server.folder / "alone")
    assert printed(server, program, data=data) == f"{said}{said}Succeeded\n"
