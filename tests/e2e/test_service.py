"""The server as a service: systemd accepts the unit, and restarting it ends no program, in a real control group."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from configparser import ConfigParser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from holdfast.app import whereabouts
from holdfast.app.systemd import Service, unit
from holdfast.domain.record import evolve
from tests.e2e.server import Server, until, wait_until
from tests.e2e.test_cli_shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.as_people_do  # how a server is started
ROOT = Path(__file__).resolve().parents[2]
HIERARCHIES = ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$*" in
    *--version*) echo "systemd ${VERSION:-255} (255)" ;;
    *is-active*) echo active ;;
    *is-enabled*) echo enabled ;;
esac
exit "${CODE:-0}"
"""


def machines(**facts: object) -> Service:
    whole = {"program": sys.executable, "data": Path("/var/lib/holdfast"), "run_as": "holdfast", **facts}
    return Service(**whole)  # type: ignore[arg-type] # by name


def read(text: str) -> dict[str, dict[str, str]]:
    parser = ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # keys of units are case-sensitive
    parser.read_string(text)
    return {name: dict(section) for name, section in parser.items()}


@pytest.mark.parametrize("service", [machines(), machines(run_as="")], ids=["of the machine", "of a user"])
def test_stopping_the_unit_ends_the_server_and_no_program(service: Service) -> None:
    found = read(unit(service))["Service"]
    assert found["KillMode"] == "process"
    assert not {"ExecStop", "ExecStopPost", "KillSignal"} & set(found), "SIGTERM to the server alone is a clean stop"
    assert (found["OOMPolicy"], found["Restart"], found["Delegate"]) == ("continue", "always", "yes")
    assert found["ExecStart"] == f"{service.program} up"
    assert found["Environment"] == "HOLDFAST_DATA=/var/lib/holdfast"


def test_the_machines_unit_has_its_user_and_begins_with_the_machine_the_users_with_the_user() -> None:
    whole, own = read(unit(machines())), read(unit(machines(run_as="")))
    assert whole["Install"]["WantedBy"] == "multi-user.target"
    assert (whole["Service"]["User"], whole["Service"]["StateDirectory"]) == ("holdfast", "holdfast")
    assert -1000 < int(whole["Service"]["OOMScoreAdjust"]) < 0
    assert own["Install"]["WantedBy"] == "default.target"
    assert not {"User", "StateDirectory", "OOMScoreAdjust"} & set(own["Service"]), "no user may have these"


def test_a_unit_for_everybody_runs_programs_as_who_submits_them_and_has_the_machines_socket() -> None:
    found = read(unit(machines(run_as="root", multi_user=True)))["Service"]
    assert found["ExecStart"] == (f"{sys.executable} up --run-as submitter --socket {whereabouts.SYSTEM_SOCKET}")
    assert (found["User"], found["RuntimeDirectory"], found["RuntimeDirectoryMode"]) == ("root", "holdfast", "0755")
    assert (found["RuntimeDirectoryPreserve"], found["StateDirectoryMode"]) == ("yes", "0711")
    assert str(whereabouts.SYSTEM_SOCKET) == "/run/holdfast/holdfast.sock"


def test_an_older_systemd_is_spared_what_it_does_not_know() -> None:
    assert "DelegateSubgroup" in read(unit(machines(), 254))["Service"]
    assert "DelegateSubgroup" not in read(unit(machines(), 253))["Service"]


@pytest.mark.parametrize("folder", ["plain", "a b%c$d"])
@pytest.mark.parametrize("run_as", ["daemon", "root", ""])
def test_systemd_finds_no_fault_with_the_unit(tmp_path: Path, folder: str, run_as: str) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("there is no systemd-analyze on this machine (Debian: apt install systemd)")
    program = tmp_path / folder / "holdfast"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    service = machines(program=str(program), data=tmp_path / folder, run_as=run_as, port=8080)
    service = evolve(service, multi_user=run_as == "root")
    version = int(subprocess.run([verify, "--version"], capture_output=True, text=True, check=True).stdout.split()[1])
    file = tmp_path / "holdfast.service"
    file.write_text(unit(service, version))
    words = ["--user"] if not run_as else []
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        [verify, *words, "verify", "--man=no", "--recursive-errors=no", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env=environ,
    )
    complaints = [line for line in done.stderr.splitlines() if file.name in line]
    assert (done.returncode, complaints) == (0, []), "also: it names a program that is there"


def test_the_documentation_gives_a_reason_for_what_is_unusual_in_the_unit() -> None:
    page = (ROOT / "docs" / "howto-operate.md").read_text()
    found = read(unit(machines()))["Service"]
    for name in ("KillMode", "OOMPolicy", "OOMScoreAdjust", "TasksMax", "Restart", "Delegate", "DelegateSubgroup"):
        assert f"`{name}={found[name]}`" in page


@pytest.fixture
def desk(tmp_path: Path) -> Shell:
    """The shell of someone whose systemd notes what it is asked; a real one cannot run inside a test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("systemctl", "loginctl"):
        (folder / name).write_text(STAND_IN)
        (folder / name).chmod(0o755)
    environ = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "CALLS": str(tmp_path / "calls"),
    }
    return Shell(tmp_path, environ)


def asked(desk: Shell) -> list[str]:
    calls = desk.folder / "calls"
    found = calls.read_text().splitlines()
    calls.unlink()
    return [line for line in found if "--version" not in line]


def test_a_service_is_written_started_asked_and_removed(desk: Shell) -> None:
    file = desk.folder / "config" / "systemd" / "user" / "holdfast.service"
    missing = desk.run("service", "status", "--user")
    assert (missing.code, missing.out) == (3, "no service is installed\n")
    done = desk.run("service", "install", "--user")
    assert done.code == 0, done.err
    assert f"{file} written" in done.out
    assert f"HOLDFAST_DATA={desk.folder / 'data'}\n" in file.read_text()
    steps = ["daemon-reload", "daemon-reload", "enable holdfast.service", "restart holdfast.service"]
    assert asked(desk)[:4] == [f"systemctl --user {step}" for step in steps]
    status = desk.run("service", "status", "--user")
    assert (status.code, "enabled" in status.out) == (0, True)
    asked(desk)
    assert desk.run("service", "uninstall", "--user").code == 0
    assert not file.exists()
    assert asked(desk) == ["systemctl --user disable --now holdfast.service", "systemctl --user daemon-reload"]


def test_without_a_systemd_that_answers_nothing_is_written(desk: Shell) -> None:
    said = Shell(desk.folder, {**desk.environ, "CODE": "1"}).run("service", "install", "--user")
    assert (said.code, said.out) == (5, "")
    assert "holdfast up --daemon" in said.err
    assert not (desk.folder / "config").exists()


def test_a_unit_is_shown_without_being_written_and_flags_are_checked(desk: Shell) -> None:
    shown = desk.run("service", "install", "--user", "--print")
    assert shown.code == 0
    assert read(shown.out)["Service"]["Type"] == "exec"
    assert not (desk.folder / "config").exists()
    wrong = desk.run("service", "status", "--user", "--run-as", "x", "--print")
    assert wrong.code == 2
    assert wrong.err.count("--run-as") + wrong.err.count("--print") == 3


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group like that of a unit."""
    for base in HIERARCHIES:
        place = Path(base) / f"holdfast-test-{os.getpid()}"
        if (Path(base) / "cgroup.procs").exists():
            with suppress(OSError):
                place.mkdir()
                break
    else:
        pytest.skip("no control group can be made on this machine")
    yield place
    wait_until(lambda: removed(place), "an empty group")


def removed(group: Path) -> bool:
    """Remove a group with those below it, if no process is left in any."""
    with suppress(OSError):
        for folder in sorted((one for one in group.rglob("*") if one.is_dir()), reverse=True):
            folder.rmdir()
        group.rmdir()
    return not group.exists()


def inside(group: Path) -> tuple[str, ...]:
    """Return what starts a command in a group."""
    return ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")


def members(group: Path) -> set[int]:
    return {int(pid) for file in group.rglob("cgroup.procs") for pid in file.read_text().split()}


def sleeper(server: Server) -> psutil.Process:
    """Find the program of the only job, once it is one: a job runs from being placed."""
    found: list[psutil.Process] = []

    def is_there() -> bool:
        found[:] = [one for one in server.programs() if one.name() == "sleep"]
        return bool(found)

    wait_until(is_there, "a program")
    return found[0]


def test_programs_in_the_group_of_the_unit_outlive_a_restart_as_kill_mode_process_does_it(
    server: Server, group: Path
) -> None:
    """What systemd does on a restart: SIGTERM to the main process alone, then a new one in the same group."""
    server.words = (*inside(group), *server.words)
    with server.start() as client:
        job = client.submit({"name": "long", "command": ["sleep", "1000"], "grace": "0s"}).id
        until(client, job, lambda view: view.state == "Running")
    program = sleeper(server)
    assert {program.pid, server.shim().pid} <= members(group), "systemd's default would kill these"
    assert server.end(signal.SIGTERM) == 0
    assert psutil.pid_exists(program.pid)
    with server.start() as client:
        view = until(client, job, lambda view: view.state == "Running")
        assert (view.attempt, psutil.pid_exists(program.pid)) == (1, True)
        client.cancel(job)
        until(client, job, lambda view: view.state == "Cancelled")
    server.clean_up()


def test_a_server_that_systemd_keeps_is_left_to_systemd(server: Server, group: Path) -> None:
    unit_group = group / "holdfast.service"
    unit_group.mkdir()
    server.words = (*inside(unit_group), *server.words)
    server.start().close()
    said = Shell(server.data.parent).run("down")
    assert said.code == 4
    assert "hint: systemctl stop holdfast" in said.err
    assert server.serves()
    server.clean_up()
