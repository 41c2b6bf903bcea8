"""One account's program and client against another's job and against the server, as an outsider would attack them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e import people
from tests.e2e.server import HOLDFAST, PATIENCE_S, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.people import Machine, Person

pytestmark = pytest.mark.slow  # a server of their own, and everything that can be tried

PYTHON = "/usr/bin/python3"
INTRUDER = Path(__file__).with_name("intruder.py").read_text(encoding="utf-8")
KEPT = "+dac_read_search,+kill"
RINGED = """
import ctypes, os, platform, sys
libc, add, ctl = ctypes.CDLL(None), *{"x86_64": (248, 250), "aarch64": (217, 219)}.get(platform.machine(), (-1, -1))
libc.syscall(ctl, 1, None)
number = libc.syscall(add, b"user", b"of-root", b"hunter2", 7, -3)
open(sys.argv[1], "w").write(str(number))
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Has a key of its own before it starts the server, as whoever logs in may have."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Machine]:
    if not os.access(PYTHON, os.X_OK):
        pytest.skip(f"NO {PYTHON}: what accounts try is written for a Python that they can run")
    before = ("setpriv", f"--inh-caps={KEPT}", f"--ambient-caps={KEPT}")
    yield from people.machine(before=(sys.executable, "-c", RINGED, "{folder}/key", *before))


def tries(who: Person, *words: str, **fields: object) -> list[str]:
    """Have somebody's job try something; returns what it could do."""
    line = f"cat > intruder.py <<'END'\n{INTRUDER}\nEND\nexec {PYTHON} intruder.py {shlex.join(words)}"
    said = who.wrote("intruder", line, **fields).splitlines()
    assert said[-1:] == ["through"], said
    return said[:-1]


def groups_of(*pids: int) -> set[str]:
    """Return the control groups of processes, and those above them."""
    found = set[str]()
    for line in "".join(Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8") for pid in pids).splitlines():
        _, kind, path = line.split(":", 2)
        mounts = [Path("/sys/fs/cgroup", kind.removeprefix("name="))] if kind else [Path("/sys/fs/cgroup")]
        if not kind:
            mounts.append(Path("/sys/fs/cgroup/unified"))
        for mount in mounts:
            place = mount / path.lstrip("/")
            found |= {str(one) for one in (place, place.parent) if (one / "cgroup.procs").exists()}
    return found


def test_nothing_of_another_account_or_of_the_server_is_within_reach(lab: Machine) -> None:
    data, ann, bob = lab.server.data, lab.ann, lab.bob
    line = "echo words; echo saved > $HOLDFAST_CHECKPOINT_DIR/state; echo $$ > pid; exec sleep 1000"
    job = ann.submit("private", line, env={"KEY": "hunter2"}, resources={"memory": "64Mi"})
    with lab.server.client() as root:
        until(root, job, lambda view: view.state == "Running")
        wait_until((data / "runs" / "jobs" / job / "1.0" / "work" / "pid").exists, "a program that has saved something")
        assert lab.server.process is not None
        ours = [lab.server.process.pid, *(one.pid for one in lab.server.holders())]
        theirs = [one.pid for one in lab.server.programs()]
        assert (len(ours), len(theirs)) >= (4, 1)
        words = [f"process={pid}" for pid in (*ours, *theirs)]
        files = [data, *data.rglob("*")]
        assert {"holdfast.db", "shim.sock", "1.sock", "1.record", "token", "server.json", "lock", "log", "state"} <= {
            one.name for one in files
        }
        words += [f"file={one}" for one in files]
        words += [f"group={one}" for one in sorted(groups_of(*ours, *theirs))]
        words += [f"key={(lab.server.folder / 'key').read_text(encoding='ascii')}"]
        assert tries(bob, *words) == []
        assert root.job(job).state == "Running", "nor is it harmed"
        root.cancel(job)
        until(root, job, lambda view: view.state == "Cancelled")
    with lab.server.client() as root:
        assert root.version().api == "v1"


def test_what_looks_at_its_files_with_its_rights_cannot_be_slowed_down_for_who_comes_next(lab: Machine) -> None:
    assert tries(lab.ann, "holder=2") == []
    assert lab.bob.wrote("nice", "nice") == "0\n"


def test_a_program_has_no_right_of_roots_and_no_key_whatever_the_server_was_started_with(lab: Machine) -> None:
    rights = "grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status | tr -d '0\\t\\n'"
    look = f"{rights}; ls -l /proc/self/fd | grep -c '>'; cat /proc/keys"
    said = lab.bob.wrote("rights", look).splitlines()
    assert said[0] == "CapInh:CapPrm:CapEff:CapAmb:4", said  # the fourth descriptor is the list's own
    assert [one for one in said if "of-root" in one] == []


def test_a_server_that_would_stay_root_as_any_account_does_not_start(lab: Machine, tmp_path: Path) -> None:
    assert lab.server.process is not None  # so we are root
    tmp_path.chmod(0o711)
    words = ("setpriv", "--securebits=+no_setuid_fixup", *HOLDFAST, "up", "--port", "0", "--run-as", "submitter")
    said = subprocess.run(
        words,
        env={**os.environ, "HOLDFAST_DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (said.returncode, "the securebit no_setuid_fixup" in said.stderr) == (4, True), said
