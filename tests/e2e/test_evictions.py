"""A machine that really runs out of memory or disk: who uses it is evicted, one at a time, whoever dies meanwhile."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.e2e.commands import HOLDFAST, Piped
from tests.e2e.test_databases import Machine, wait_until
from tests.e2e.test_shortages import mounted
from tests.unit.jobset_lab import group as replicated
from tests.unit.jobset_lab import manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.client import Client
    from holdfast.wire.jobs import AttemptView

pytestmark = pytest.mark.slow  # a machine is looked at for seconds before and after each eviction

LIMIT, MARGIN, MOST_USED = 800 << 20, 1 << 30, 4 << 30
MOST_S = 90.0
"""A node under pressure gets no work for 30 s after that."""
FILLS_MEMORY = f"""exec {sys.executable} -c '
import os, signal, time
ignored = int(os.environ.get("IGNORES", "0"))
if os.environ["HOLDFAST_ATTEMPT"] == "1":
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignored else signal.SIG_DFL)
    held = bytearray(450 << 20)
    for at in range(0, len(held), 4096):
        held[at] = 1
    print("full", flush=True)
    time.sleep(600)
'"""
WAITS = re.compile(r"^node \S+ has been short of memory since .* and the minimum is \S+$")
FILLS_DISK = "if [ $HOLDFAST_ATTEMPT = 1 ]; then head -c 40000000 /dev/zero > big; sleep 600; fi"


class InGroup(Machine):
    """A machine of which everything is in one control group."""

    group: Path | None = None

    def start(self, *words: str) -> subprocess.Popen[str] | Piped:
        if self.group is None:
            return super().start(*words)
        pipe = subprocess.PIPE
        enter = f'echo $$ > {self.group}/cgroup.procs; exec "$@"'
        return subprocess.Popen(
            ["sh", "-c", enter, "sh", *HOLDFAST, *words],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Path]:
    """A control group with a limit on memory."""
    found = Path(f"/sys/fs/cgroup/memory/{tmp_path.parent.name}-{tmp_path.name}")
    try:
        found.mkdir()
        (found / "memory.limit_in_bytes").write_text(str(LIMIT))
    except OSError as error:
        pytest.skip(f"no control group can limit memory here ({error})")
    yield found
    for folder in sorted(found.glob("**/"), reverse=True):
        for pid in (folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        with suppress(OSError):  # they may need a moment more
            folder.rmdir()


def ended(client: Client, job: str) -> list[AttemptView]:
    return [each for each in client.attempts(job) if each.ended_at is not None]


def shim_of(machine: Machine) -> psutil.Process:
    """Return the process that every program of a machine comes from."""
    program = next(each for each in machine.programs() if "sleep" in each.cmdline())
    return program.parents()[1]


def evicted(client: Client, job: str) -> list[AttemptView]:
    return [each for each in ended(client, job) if "Evicted" in each.conditions]


def test_a_program_that_fills_the_memory_of_its_control_group_is_evicted_and_runs_again(
    tmp_path: Path, group: Path
) -> None:
    machine = InGroup(tmp_path / "data", {"HOLDFAST_EVICT_BELOW": "memory=50%"})
    machine.group = group
    with machine.serving() as client:
        client.submit({"name": "small", "shell": "sleep 600", "resources": {"cpu": 0.1}})
        client.submit({"name": "big", "shell": FILLS_MEMORY, "resources": {"cpu": 0.1}, "retry": {"retryLimit": 0}})
        wait_until(lambda: bool(evicted(client, "big")))
        (first,) = evicted(client, "big")
        words = r"node \S+ was low on memory: \S+ of 800Mi available in \S+, and the minimum is 400Mi; it used 4\d\d"
        assert re.match(words, first.message), first.message
        assert first.decision is not None
        assert (first.decision.rule, first.runs[0].ended_by) == ("evicted", "eviction")
        wait_until(lambda: WAITS.search(client.job("big").reason) is not None)
        assert "short of memory since" in client.nodes()[0].reason
        assert 'holdfast_nodes_short{of="memory"} 1.0' in client.metrics()
        wait_until(lambda: client.job("big").state == "Succeeded", within_s=MOST_S)
        assert len(client.attempts("big")) == 2
        assert [each.state for each in client.attempts("small")] == ["Running"]
        client.cancel("small")


def test_what_the_whole_machine_has_left_counts_where_there_is_no_control_group(tmp_path: Path) -> None:
    least = psutil.virtual_memory().available - MARGIN
    if least < MOST_USED:
        pytest.skip("this machine has too little memory left for a program that uses much of it")
    machine = Machine(tmp_path / "data", {"HOLDFAST_EVICT_BELOW": f"memory={least}"})
    with machine.serving() as client:
        client.submit({"name": "big", "shell": FILLS_MEMORY.replace("450 <<", "2500 <<"), "retry": {"retryLimit": 0}})
        wait_until(lambda: bool(evicted(client, "big")))
        (first,) = evicted(client, "big")
        words = r"node \S+ was low on memory: \S+Gi of \S+Gi available, and the minimum is \S+Gi; it used \d"
        assert re.match(words, first.message), first.message
        wait_until(lambda: client.job("big").state == "Succeeded", within_s=MOST_S)


def test_a_program_that_fills_the_disk_is_evicted_and_gives_back_what_it_wrote(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "data", {"HOLDFAST_EVICT_BELOW": "disk=50%"})
    with mounted(machine.data / "runs", "size=64m"), machine.serving() as client:
        client.submit({"name": "small", "shell": "echo hello > small; sleep 600", "resources": {"cpu": 0.1}})
        client.submit({"name": "big", "shell": FILLS_DISK, "resources": {"cpu": 0.1}})
        wait_until(lambda: bool(evicted(client, "big")))
        (first,) = evicted(client, "big")
        words = r"node \S+ was low on disk: 2\d\.?\d*Mi of 64Mi available, and the minimum is 32Mi; it used 38\."
        assert re.match(words, first.message), first.message
        wait_until(lambda: client.job("big").state == "Succeeded", within_s=MOST_S)
        assert [each.state for each in client.attempts("small")] == ["Running"]
        client.cancel("small")
        assert not list((machine.data / "runs").rglob("big"))
        assert list((machine.data / "runs").rglob("small"))


def test_a_pod_that_requested_the_disk_it_uses_stays_where_another_program_requested_none(tmp_path: Path) -> None:
    environ = {"HOLDFAST_EVICT_BELOW": "disk=50%", "HOLDFAST_RESOURCES": "ephemeral-storage=64Mi"}
    machine = Machine(tmp_path / "data", environ)
    asking = replicated("w")
    (container,) = asking["template"]["spec"]["template"]["spec"]["containers"]
    container["command"] = ["sh", "-c", "head -c 24000000 /dev/zero > more; sleep 600"]
    container["resources"] = {"requests": {"cpu": "100m", "ephemeral-storage": "30Mi"}}
    with mounted(machine.data / "runs", "size=64m"), machine.serving() as client:
        client.create_job_set(manifest(replicatedJobs=[asking]))
        wait_until(lambda: any(one.stat().st_size == 24_000_000 for one in (machine.data / "runs").rglob("more")))
        client.submit({"name": "less", "shell": FILLS_DISK.replace("40000000", "16000000"), "resources": {"cpu": 0.1}})
        wait_until(lambda: bool(evicted(client, "less")))
        assert "and had requested nothing" in evicted(client, "less")[0].message
        (pod,) = [job for job in client.jobs() if job.name != "less"]
        assert [each.state for each in client.attempts(pod.id)] == ["Running"]
        client.suspend_job_set("train")


def test_an_eviction_over_which_server_and_shim_are_killed_is_made_once(tmp_path: Path, group: Path) -> None:
    environ = {"HOLDFAST_EVICT_BELOW": "memory=50%:1s"}
    machine = InGroup(tmp_path / "data", environ)
    machine.group = group
    big = {"name": "big", "shell": FILLS_MEMORY, "grace": "6s", "env": {"IGNORES": "1"}, "resources": {"cpu": 0.1}}
    with machine.serving(end=signal.SIGKILL) as client:
        client.submit({"name": "small", "shell": "sleep 600", "resources": {"cpu": 0.1}})
        client.submit(big)
        wait_until(lambda: client.attempts("big")[0].phase == "TERMINATING" if client.attempts("big") else False)
        shim_of(machine).kill()
    with machine.serving() as client:
        wait_until(lambda: bool(ended(client, "big")))
        (first,) = evicted(client, "big")
        assert "low on memory" in first.message
        wait_until(lambda: client.job("big").state == "Succeeded", within_s=MOST_S)
        assert len(client.attempts("big")) == 2
        assert [each.state for each in client.attempts("small")] == ["Running"]
        client.cancel("small")
