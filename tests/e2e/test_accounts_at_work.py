"""What an account's job may bring with it for others to trip over: variables, links, dumps of memory, groups."""

from __future__ import annotations

import os
import resource
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e import people
from tests.e2e.server import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.people import Machine

pytestmark = pytest.mark.slow  # a server of their own

PYTHON = "/usr/bin/python3"
CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")
UNIFIED = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
NOTING = "import os\nopen({noted!r}, 'a').write(f'{{os.getuid()}}\\n')\n"
SWAPPING = """
import os, sys, time
own, kept, link, until = *sys.argv[1:4], time.monotonic() + 1.5
while time.monotonic() < until:
    for target in (own, kept):
        os.symlink(target, link + ".new")
        os.rename(link + ".new", link)
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Machine]:
    yield from people.machine()


@pytest.fixture
def shared(lab: Machine) -> Path:
    """Return a folder that everybody may write."""
    folder = lab.server.folder / "shared"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1777)
    return folder


def test_variables_of_a_job_act_in_nothing_that_runs_with_more_rights(lab: Machine, shared: Path) -> None:
    noted = shared / "who"
    noted.touch()
    noted.chmod(0o666)
    (shared / "at-start.sh").write_text(f"id -u >> {noted}\n", encoding="ascii")
    for name in ("sitecustomize.py", "usercustomize.py"):
        (shared / name).write_text(NOTING.format(noted=str(noted)), encoding="ascii")
    script, modules = str(shared / "at-start.sh"), str(shared)
    env = {
        "BASH_ENV": script,
        "ENV": script,
        "PYTHONPATH": modules,
        "PYTHONSTARTUP": str(shared / "sitecustomize.py"),
        "PYTHONHOME": str(shared / "no-such-home"),
        "LD_PRELOAD": str(shared / "no-such-library.so"),
        "LD_LIBRARY_PATH": modules,
        "GCONV_PATH": modules,
        "PATH": f"{modules}:{os.defpath}",
    }
    run = f"bash -c true; env -u PYTHONHOME {PYTHON} -c 1; kill -9 $$"
    job = lab.ann.submit("brings", run, env=env, resources={"memory": "64Mi"})
    with lab.server.client() as root:
        until(root, job, lambda view: view.state == "Failed")
        assert root.version().api == "v1"
    assert {*noted.read_text(encoding="ascii").split()} == {str(lab.ann.uid)}, "in its own programs, and in no other"
    for one in lab.server.holders():
        given = Path(f"/proc/{one.pid}/environ").read_bytes()
        assert [name for name in env if f"{name}={env[name]}".encode() in given] == [], one
    errors = [path for path in lab.server.folder.glob("*.log") if b"no-such-library" in path.read_bytes()]
    assert errors == [], "nothing of ours was asked to load it"


def test_a_job_starts_where_its_account_may_go_whatever_a_link_becomes_meanwhile(lab: Machine, shared: Path) -> None:
    kept = lab.server.folder / "kept"
    kept.mkdir()
    kept.chmod(0o700)
    (kept / "plan").write_text("the plan", encoding="ascii")
    own = shared / "own"
    own.mkdir()
    own.chmod(0o777)
    link = shared / "link"
    swapping = f"exec {PYTHON} -c {shlex.quote(SWAPPING)} {own} {kept} {link}"
    swap = lab.ann.submit("swap", f"ln -s {own} {link}; {swapping}")
    look = f"pwd -P; ls {link}/ .; cat plan {link}/plan; exit 0"
    seen = ""
    with lab.server.client() as root:
        until(root, swap, lambda view: view.state == "Running")
        for _ in range(12):
            job = lab.ann.submit("look", look, workingDir=str(link))
            ended = until(root, job, lambda view: view.state in {"Succeeded", "Failed"})
            seen += root.logs(job).text
            if ended.state == "Failed":
                assert "ermission denied" in ended.attempts[-1].message, ended.attempts[-1].message
        until(root, swap, lambda view: view.state == "Succeeded")
    assert "the plan" not in seen
    assert str(kept) not in {*seen.splitlines()}, "it never stood there"
    straight = lab.ann.submit("straight", look, workingDir=str(kept))
    with lab.server.client() as root:
        until(root, straight, lambda view: view.state == "Failed")


def test_why_a_script_cannot_be_started_is_read_with_the_rights_of_its_account(lab: Machine, shared: Path) -> None:
    for name, mode in (("open", 0o755), ("closed", 0o711)):
        (shared / name).write_text("#!/no/such/plan\n", encoding="ascii")
        (shared / name).chmod(mode)
        (shared / name).rename(shared.parent / name)
    told = {name: lab.ann.run("run", "--", str(shared.parent / name)).stderr for name in ("open", "closed")}
    assert "the interpreter '/no/such/plan'" in told["open"]
    assert "No such file or directory" in told["closed"]
    assert "plan" not in told["closed"]


def test_a_dump_of_memory_lands_where_its_account_alone_reads_it(lab: Machine) -> None:
    if CORE_PATTERN.read_text(encoding="ascii").startswith(("/", "|")):
        pytest.skip("NO DUMPS: this machine gives them to a program or a folder of its own")
    line = "ulimit -c unlimited; echo core of ann > said; kill -SEGV $$"
    lab.ann.wrote("dumps", line, resources={"memory": "64Mi"})
    dumped = [path for path in lab.server.data.rglob("core*") if path.is_file()]
    assert dumped or resource.getrlimit(resource.RLIMIT_CORE)[1] == 0, "this is about something"
    for path in dumped:
        about = path.stat()
        assert (about.st_uid, stat.S_IMODE(about.st_mode) & 0o077) == (lab.ann.uid, 0), path
        assert "/work/" in str(path)
        assert lab.bob.wrote("thief", f"cat {path} >/dev/null && echo read").splitlines()[-1:] != ["read"]
    own = [str(Path(f"/proc/{one.pid}/cwd").readlink()) for one in lab.server.holders()]
    assert [place for place in own if place.endswith("/work")] == [], "ours would dump into no job's folder"


def test_no_account_writes_to_groups_of_the_second_version(lab: Machine) -> None:
    root = next((one for one in UNIFIED if (one / "cgroup.controllers").exists()), None)
    if root is None:
        pytest.skip("NO CONTROL GROUPS OF VERSION 2 on this machine")
    # Of its own group, of that above it, and of the first of all.
    script = rf"""
own={root}$(sed -n 's/^0:://p' /proc/self/cgroup)
for place in "$own" "$(dirname "$own")" {root}; do
    for name in cgroup.procs cgroup.threads cgroup.subtree_control cgroup.freeze cgroup.kill cgroup.type \
        memory.max memory.oom.group pids.max; do
        [ -e "$place/$name" ] && (echo $$ > "$place/$name") 2>/dev/null && echo "wrote $place/$name"
    done
    mkdir "$place/intruder" 2>/dev/null && echo "made a group in $place"
done
cat /proc/self/cgroup
"""
    said = lab.bob.wrote("groups", script, resources={"memory": "64Mi"}).splitlines()
    assert [one for one in said if one.startswith(("wrote ", "made "))] == []
    assert any(one.startswith("0::") for one in said)
