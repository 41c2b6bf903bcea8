"""A server as a service of systemd: its unit file, and the steps that install and remove it.

Programs outlive the service: only the server is told to stop (``KillMode=process``), and the next one takes them over.
"""

from __future__ import annotations

import getpass
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.data.datadir import DataDir
from holdfast.app.settings import DEFAULT_PORT, read_settings
from holdfast.app.whereabouts import SYSTEM_SOCKET
from holdfast.domain.record import Struct
from holdfast.errors import InvalidRequest, Problem, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "holdfast"
_UNIT = f"{NAME}.service"
_STATE = Path("/var/lib")
_WITH_SUBGROUPS = 254
"""The first version that starts a service in a group below the one it may divide."""
_PATIENCE_S = 60.0
_TEMPLATE = """\
# Written by `holdfast service install`. Settings: HOLDFAST_NAME=VALUE lines in %E/holdfast/holdfast.env.
[Unit]
Description=Holdfast, runs batch jobs to completion
{after}# Restarts are never given up: jobs wait for the server.
StartLimitIntervalSec=0

[Service]
Type=exec
{who}Environment={data}
EnvironmentFile=-%E/holdfast/holdfast.env
ExecStart={command}
Restart=always
RestartSec=1

# Only the server itself is told to stop. The default, control-group, would kill the shim and every program with it;
# like this they go on, and the next server takes them over with their real exit codes.
KillMode=process
TimeoutStopSec=30

# Programs are in the unit's control group. The kernel ending one of them for its memory must not stop the unit{oom}
# The limits of the unit are those of the server and all programs together.
TasksMax=infinity
LimitNOFILE=65536

# Lets the shim make control groups of its own for memory limits.
Delegate=yes
{subgroup}
[Install]
WantedBy={target}
"""
_RUNTIME = """\
# Where its socket is, which everybody can use; the folder stays while it is restarted.
RuntimeDirectory={name}
RuntimeDirectoryMode=0755
RuntimeDirectoryPreserve=yes
"""
_NETWORK = "After=network-online.target\nWants=network-online.target\n"
_OOM_OF_ALL = """, and when memory
# runs out everywhere the kernel should take a program, which is retried, and not the server.
OOMPolicy=continue
OOMScoreAdjust=-500
"""
_OOM_OF_ONE = ".\nOOMPolicy=continue\n"


class Service(Struct, frozen=True):
    """The server to run, its user and its data directory."""

    program: str
    """The full path of the command ``holdfast``."""
    data: Path
    run_as: str = ""
    """The user of a system service; empty for the caller's own service."""
    port: int = DEFAULT_PORT
    multi_user: bool = False
    """Whether everybody on the machine may use it, with programs that run as them; its user is then root."""

    @property
    def is_own(self) -> bool:
        """Whether it is a service of the caller alone."""
        return not self.run_as


def unit(service: Service, version: int = _WITH_SUBGROUPS) -> str:
    """Write the unit file, for a systemd of this version."""
    managed = service.data.parent == _STATE
    mode = "0711" if service.multi_user else "0700"
    state = f"StateDirectory={service.data.name}\nStateDirectoryMode={mode}\n" if managed else ""
    port = "" if service.port == DEFAULT_PORT else f" --port {service.port}"
    if service.multi_user:
        state += _RUNTIME.format(name=SYSTEM_SOCKET.parent.name)
        port += f" --run-as submitter --socket {SYSTEM_SOCKET}"
    return _TEMPLATE.format(
        after="" if service.is_own else _NETWORK,
        who="" if service.is_own else f"User={service.run_as}\n{state}",
        data=_quoted(f"HOLDFAST_DATA={service.data}"),
        command=f"{_quoted(service.program)} up{port}",
        oom=_OOM_OF_ONE if service.is_own else _OOM_OF_ALL,
        subgroup="DelegateSubgroup=server\n" if version >= _WITH_SUBGROUPS else "",
        target="default.target" if service.is_own else "multi-user.target",
    )


def _quoted(text: str) -> str:
    """Write a word so that systemd reads it as it is; a percent sign begins a specifier there."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if re.search(r"[\s\"';\\]", text) else escaped


def planned(
    *,
    own: bool,
    data: Path | None,
    run_as: str | None,
    port: int,
    must_exist: bool = True,
    multi_user: bool = False,
) -> Service:
    """Complete a service with defaults.

    Raises:
        InvalidRequest: The user does not exist.
    """
    program = _program()
    if own:
        return Service(program, (data or read_settings().data).absolute(), port=port)
    if multi_user:
        return Service(program, (data or _STATE / NAME).absolute(), "root", port, multi_user=True)
    name = run_as or NAME
    if must_exist and not _is_a_user(name):
        message = f"useradd --system --home-dir {_STATE / NAME} --shell /usr/sbin/nologin {NAME}"
        problem = Problem("--run-as", f"there is no user {name!r}", hint=f"name one, or create it: {message}")
        raise InvalidRequest(problems=[problem])
    return Service(program, (data or _STATE / NAME).absolute(), name, port)


def _is_a_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _program() -> str:
    """Return where the command is, whatever name it was called by."""
    beside = Path(sys.executable).parent / NAME
    return str(beside if beside.exists() else Path(shutil.which(NAME) or sys.argv[0]).absolute())


class Systemd:
    """The service manager of the machine, or of the caller alone."""

    def __init__(self, *, own: bool) -> None:
        self._own = own

    @property
    def file(self) -> Path:
        """Where the unit file is."""
        if not self._own:
            return Path("/etc/systemd/system") / _UNIT
        base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        return Path(base) / "systemd" / "user" / _UNIT

    def version(self) -> int:
        """Return systemd's version, or the newest known one without systemd."""
        program = shutil.which("systemctl")
        output = _call([program, "--version"]).stdout if program else ""
        match = re.search(r"\bsystemd (\d+)", output)
        return int(match[1]) if match else _WITH_SUBGROUPS

    def install(self, service: Service) -> None:
        """Write the unit file, and start the service now and whenever the machine starts.

        Raises:
            Refused: The caller may not change a system service, or another server runs on the data directory.
            Unavailable: There is no systemd, or it fails.
        """
        self._require_rights()
        self.ask("daemon-reload")
        server = DataDir(service.data).server() if service.data.is_dir() else None
        if server is not None and not self.is_active():
            message = f"a server runs on {service.data} already, process {server.pid}"
            raise Refused(message, hint="stop it first, running programs go on: holdfast down")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            fresh = self.file.with_suffix(".new")
            fresh.write_text(unit(service, self.version()))
            fresh.replace(self.file)
        except OSError as error:
            message = f"cannot write {self.file}: {error.strerror}"
            raise Unavailable(message) from error
        self.ask("daemon-reload")
        self.ask("enable", _UNIT)
        self.ask("restart", _UNIT)

    def uninstall(self) -> bool:
        """Stop the service and delete its unit file; returns whether there was one. Programs go on.

        Raises:
            Refused, Unavailable: As ``install``.
        """
        self._require_rights()
        if not self.file.exists():
            return False
        self.ask("disable", "--now", _UNIT)
        self.file.unlink()
        self.ask("daemon-reload")
        return True

    def is_enabled(self) -> str:
        """Return systemd's word for whether it starts with the machine."""
        return self._answer("is-enabled", _UNIT)

    def is_active(self) -> bool:
        """Whether it runs."""
        return self._answer("is-active", _UNIT) == "active"

    def stays(self) -> bool:
        """Let the caller's services run without a login, also after a reboot; returns whether they do."""
        program = shutil.which("loginctl")
        return program is not None and _call([program, "enable-linger", getpass.getuser()]).returncode == 0

    def ask(self, *words: str) -> None:
        """Run a command of systemctl.

        Raises:
            Unavailable: There is no systemd, or the command failed.
        """
        done = _call(self._command(words))
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            message = f"systemctl {' '.join(words)} failed: {lines[0] if lines else f'exit code {done.returncode}'}"
            raise Unavailable(message, hint="without systemd: holdfast up --daemon; the unit alone: --print")

    def _answer(self, *words: str) -> str:
        return _call(self._command(words)).stdout.strip() or "unknown"

    def _command(self, words: Sequence[str]) -> list[str]:
        program = shutil.which("systemctl")
        if program is None:
            message = "there is no systemd on this machine"
            raise Unavailable(message, hint="start the server in another way: holdfast up --daemon")
        return [program, *(["--user"] if self._own else []), *words]

    def _require_rights(self) -> None:
        if not self._own and os.geteuid() != 0:
            message = "only an administrator can change a system service"
            raise Refused(message, hint="use sudo, or install a service for yourself: --user")


def is_out_of_reach(program: str) -> bool:
    """Whether a folder above a program is closed to other users."""
    folders = Path(program).resolve().parents
    return any(not folder.stat().st_mode & stat.S_IXOTH for folder in folders)


def _call(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - systemd's own programs
        command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False, stdin=subprocess.DEVNULL
    )
