"""What runs are to the shim: the messages that launch them, the reports on them, and the files they have.

<directory>/jobs/<job id>/checkpoints/              kept over attempts
<directory>/jobs/<job id>/<attempt>.<rank>/work/    where the program starts, unless the job says where
<directory>/jobs/<job id>/<attempt>.<rank>/{log,began,times,termination,progress}
<directory>/jobs/<job id>/<attempt>.<rank>/{stderr,stderr.began,stderr.times}    where stdout and stderr are kept apart

A program's environment is, later ones winning: the base (a short list of the server's own variables), the
job's ``env``, which GPUs it sees, and the ``HOLDFAST_*`` variables that tell it who it is.
"""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from bisect import bisect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.domain.failure import ContainerResult, EndedBy, RunOutcome
from holdfast.engines.devices.visible import visible
from holdfast.engines.process.shim import files, removal
from holdfast.engines.process.shim.records import (
    BEGAN_OF,
    CHECKPOINTS,
    LOG,
    PROGRESS,
    RESULT,
    STDERR,
    STOP,
    TERMINATION,
    TIMES_OF,
)
from holdfast.engines.process.shim.removal.folder import discard
from holdfast.engines.process.shim.supervisor import times
from holdfast.errors import InvalidRequest, Unavailable
from holdfast.ports.engine import Observation, RunPhase
from holdfast.ports.logs import LogPart, LogTimes
from holdfast.ports.secrets import SecretUser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from io import FileIO

    from holdfast.domain.devices import Device
    from holdfast.domain.workloads.watching import StallLimits
    from holdfast.ports.engine import RunOrder


_MOST_BEGINNINGS = 64 << 10
"""Bytes; some ten thousand programs. If there are more, only the newest are told apart."""
_NO_LOG = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK, errno.EINVAL)
"""The file does not exist yet or any more, or the program put something else in its place."""
_NANOSECONDS = 1_000_000_000
_DISCARD_LIMIT_S = 20.0
"""Seconds for deleting what one job left; the rest goes the next time."""
_REMOVAL = Path(removal.__file__).with_name("__main__.py")


def log_path(directory: Path, job_id: str, attempt: int, rank: int) -> Path:
    """Return the path of the output of one rank of one attempt, stdout and stderr as they came.

    Its beginning may have been freed, see ``log_start``.
    """
    return Path(job_directory(directory, job_id), f"{attempt}.{rank}", LOG)


def log_start(path: Path) -> int:
    """Return the offset of the first byte of a log; a capped log keeps its offsets and loses its oldest part.

    Returns:
        0 for a whole log, and for one that does not exist.
    """
    try:
        fd = files.open_plain(os.fspath(path), os.O_RDONLY, _owner(path.parent))
    except OSError:
        return 0
    try:
        return os.lseek(fd, 0, os.SEEK_DATA)
    except OSError as error:
        return os.fstat(fd).st_size if error.errno == errno.ENXIO else 0
    finally:
        os.close(fd)


def log_beginnings(path: Path, size: int) -> tuple[int, ...]:
    """Return the offsets within a log of that size at which programs after the first began, in order."""
    began = path.with_name(BEGAN_OF[path.name])
    text = files.tail_text(os.fspath(began), _MOST_BEGINNINGS, _owner(path.parent))
    offsets = sorted(set(map(files.offset_in, text.splitlines())))
    return tuple(offsets[bisect(offsets, 0) : bisect(offsets, size)])


def _owner(run: Path) -> int | None:
    """Return the owner that a run's files must have, if that is another account, which may plant links.

    Raises:
        OSError: There is no such run.
    """
    uid = run.lstat().st_uid
    return None if uid == os.geteuid() else uid


def job_directory(directory: Path, job_id: str) -> str:
    """Return the directory of a job.

    Raises:
        InvalidRequest: The id is not a file name.
    """
    if "/" in job_id or "\0" in job_id or job_id.startswith(".") or not job_id:
        msg = f"{job_id!r} is not a job id"
        raise InvalidRequest(msg)
    return f"{directory}/jobs/{job_id}"


class ProcessLogs:
    """The logs below one engine directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int, stderr: bool = False) -> LogPart:
        """Read at most ``limit`` bytes from ``offset``, or from the present beginning of a capped log.

        Raises:
            Unavailable: The file exists and cannot be read.
        """
        path = self._path(job_id, attempt, rank, stderr=stderr)
        try:
            with _opened(path) as file:
                size = os.fstat(file.fileno()).st_size
                begins = max(offset, log_start(path)) if offset < size else offset
                file.seek(begins)
                data = file.read(limit)
                # Looked up after reading: the beginning of any program read here was written down before.
                return LogPart(data, size, begins, log_beginnings(path, size))
        except OSError as error:
            if error.errno in _NO_LOG:
                return LogPart(b"", 0, offset)
            raise _unreadable(path, error) from error

    def times(self, job_id: str, attempt: int, rank: int, *, stderr: bool = False) -> LogTimes:
        """Return when the parts of a log were written.

        Raises:
            Unavailable: The file exists and cannot be read.
        """
        path = self._path(job_id, attempt, rank, stderr=stderr)
        try:
            noted = times.read(os.fspath(path.with_name(TIMES_OF[path.name])), _owner(path.parent))
        except OSError:
            noted = times.NONE  # A short run has none: its log's last change says everything.
        try:
            with _opened(path) as file:
                now = os.fstat(file.fileno())
        except OSError as error:
            if error.errno in _NO_LOG:
                return LogTimes()
            raise _unreadable(path, error) from error
        count = bisect(noted[0], now.st_size - 1)
        ends = (*noted[0][:count], now.st_size)
        last = noted[1][count] if noted[0][count : count + 1] == ends[-1:] else now.st_mtime_ns
        return LogTimes(ends, tuple(at / _NANOSECONDS for at in (*noted[1][:count], last)))

    def result(self, job_id: str, attempt: int, rank: int, *, limit: int) -> bytes | None:
        """Return a run's result.

        Raises:
            Unavailable: The file exists and cannot be read.
        """
        path = self._path(job_id, attempt, rank, stderr=False).with_name(RESULT)
        try:
            with _opened(path) as file:
                return file.read(limit) if os.fstat(file.fileno()).st_size <= limit else None
        except OSError as error:
            if error.errno in _NO_LOG:
                return None
            raise _unreadable(path, error) from error

    def _path(self, job_id: str, attempt: int, rank: int, *, stderr: bool) -> Path:
        path = log_path(self._directory, job_id, attempt, rank)
        return path.with_name(STDERR) if stderr else path


def _opened(path: Path) -> FileIO:
    return open(files.open_plain(os.fspath(path), os.O_RDONLY, _owner(path.parent)), "rb", buffering=0)  # noqa: PTH123 - of an fd


def _unreadable(path: Path, error: OSError) -> Unavailable:
    return Unavailable(f"cannot read {path}: {error.strerror}")


class ProcessFiles:
    """The directories below one engine directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def discard(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        """Delete everything that the runs of jobs left on the disk, within a time per job; missing files are fine.

        Returns:
            Why something is left, for each job of which something is.

        Raises:
            InvalidRequest: An id is not a file name.
        """
        for job_id in job_ids:
            job_directory(self._directory, job_id)
        jobs = self._directory / "jobs"
        if os.geteuid() != 0:
            return discard(os.fspath(jobs), job_ids, _DISCARD_LIMIT_S)
        command = [sys.executable, "-I", "-S", os.fspath(_REMOVAL), os.fspath(jobs.absolute()), str(_DISCARD_LIMIT_S)]
        try:
            done = subprocess.run(  # noqa: S603 - our own interpreter and file
                command, input=json.dumps(job_ids), capture_output=True, text=True, cwd="/", env={}, check=True
            )
        except (OSError, subprocess.CalledProcessError) as error:
            return dict.fromkeys(job_ids, f"what deletes the files of jobs could not be run: {error}")
        kept: dict[str, str] = json.loads(done.stdout)
        return kept


STACK_SIGNAL = 49
"""Asks a program that handles it to write its stacks to stderr: a real-time signal without another known use."""
CONTAINER = "main"
"""The container name of a local run's only process, in rules."""
PERSONAL = frozenset({"HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"})
"""Variables of the server's account; a program that runs as another account gets that account's."""
INHERITED = PERSONAL | {"PATH", "LANG", "LANGUAGE", "TZ"}
"""Variables that programs inherit from the server, besides ``LC_*``; never its address or token."""
_DEFAULTS = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
_NOT_IN_A_NAME = re.compile(r"[^A-Z0-9]")


def base_environment(environ: Mapping[str, str], *, personal: bool = True) -> dict[str, str]:
    """Choose what programs inherit, with or without the variables of this process's account."""
    inherited = INHERITED if personal else INHERITED - PERSONAL
    chosen = {name: value for name, value in environ.items() if name in inherited or name.startswith("LC_")}
    return {**_DEFAULTS, **chosen}


def port_variable(name: str) -> str:
    """Return the part of a port's variable after ``HOLDFAST_PORT_``: upper case, ``_`` for invalid characters."""
    return _NOT_IN_A_NAME.sub("_", name.upper())


def launch_message(
    directory: Path,
    order: RunOrder,
    devices: Sequence[Device] = (),
    secret: Callable[[str, SecretUser], str | None] = lambda *_: None,
    accounts: Mapping[str, str] | None = None,
    blob: Callable[[str, SecretUser], Path] | None = None,
) -> dict[str, Any]:
    """Build the shim's launch message. The shim chooses ports; ``devices`` are all GPUs of the run's node.

    With ``accounts`` the run gets its submitter's account, from that table or by the submitter's own name.
    """
    [main] = order.containers  # The engine does not claim to run more than one container.
    job = job_directory(directory, order.job_id)
    run = f"{job}/{order.attempt}.{order.rank}"
    identity = {
        "HOLDFAST_JOB_ID": order.job_id,
        "HOLDFAST_JOB_NAME": order.job_name,
        "HOLDFAST_ATTEMPT": str(order.attempt),
        "HOLDFAST_RANK": str(order.rank),
        "HOLDFAST_SIZE": str(order.size),
        "HOLDFAST_ATTEMPT_UID": order.uid,
        "HOLDFAST_TERMINATION_LOG": f"{run}/{TERMINATION}",
        "HOLDFAST_PROGRESS_FILE": f"{run}/{PROGRESS}",
        "HOLDFAST_RESULT_FILE": f"{run}/{RESULT}",
        "HOLDFAST_NODE": order.node,
        "HOLDFAST_CHECKPOINT_DIR": f"{job}/{CHECKPOINTS}",
        "HOLDFAST_MASTER_ADDR": "127.0.0.1",
    }
    identity |= visible(devices, order.gpus, share_m=order.resources.share_m) if devices else {}
    message: dict[str, Any] = {
        "uid": order.uid,
        "node": order.node,
        "directory": run,
        "argv": list(main.command),
        "env": {**main.env, **identity},
        "cwd": main.working_dir,
        "memory": order.resources.memory if main.memory_limit is None else main.memory_limit,
        "deadline_s": order.deadline_s,
        "grace_s": order.grace_s,
        "ports": list(map(port_variable, order.ports)),
        "gang": f"{order.job_id}/{order.attempt}" if order.size > 1 else "",
        "separate": order.separate_logs,
    }
    if accounts is not None:
        message["account"] = (accounts.get(order.submitted_by, order.submitted_by), order.submitter_uid)
    if main.secrets:
        _add_secrets(message, main.secrets, lambda name: secret(name, _user(order)))
    if order.stall is not None:
        _add_limits(message, order.stall, order.gpus)
        identity["HOLDFAST_STACK_SIGNAL"] = str(STACK_SIGNAL)
        message["env"] |= identity
    if order.warning is not None:
        message["warning"] = (order.warning.before_s, order.warning.number)
        message["env"]["HOLDFAST_STOP_FILE"] = f"{run}/{STOP}"
    if order.checkpointed_exit_code is not None:
        message["env"]["HOLDFAST_CHECKPOINTED_EXIT_CODE"] = str(order.checkpointed_exit_code)
    if order.checkpoints_of:
        message["checkpoints_of"] = [job_directory(directory, other) for other in order.checkpoints_of]
    return message | _preparing(order, blob)


def _preparing(order: RunOrder, blob: Callable[[str, SecretUser], Path] | None) -> dict[str, Any]:
    """Describe what happens before the program is started, and to its work directory afterwards."""
    message: dict[str, Any] = {} if order.keeps_work else {"clear": True}
    if order.inputs:
        message["inputs"] = _inputs(order, blob)
    if order.preparation is not None:
        message["prepare"] = [list(order.preparation.command), order.preparation.timeout_s]
    return message


def _inputs(order: RunOrder, blob: Callable[[str, SecretUser], Path] | None) -> list[tuple[str, str, str]]:
    """Describe the inputs of the work directory: name (empty for an archive), then content or path."""
    user = _user(order)
    return [
        (
            "" if input_.unpack else input_.path,
            input_.data,
            os.fspath(blob(input_.blob, user)) if input_.blob and blob else "",
        )
        for input_ in order.inputs
    ]


def _user(order: RunOrder) -> SecretUser:
    return SecretUser(order.submitted_by, order.submitter_uid, order.queue)


def _add_secrets(message: dict[str, Any], named: Mapping[str, str], secret: Callable[[str], str | None]) -> None:
    values = {variable: secret(name) for variable, name in named.items()}
    message["env"] |= {variable: value for variable, value in values.items() if value is not None}
    message["missing"] = [named[variable] for variable, value in values.items() if value is None]


def _add_limits(message: dict[str, Any], stall: StallLimits, gpus: Sequence[str]) -> None:
    message["stall"] = stall.in_words()
    if stall.idle_device_s is not None:
        limit_s, words = message["stall"]["device"]
        message["stall"]["device"] = (limit_s, f"{words}: {', '.join(gpus)}")
        message["gpus"] = list(gpus)


def observation(report: Mapping[str, Any]) -> Observation:
    """Build the observation of one run."""
    facts = report["outcome"]
    return Observation(
        uid=report["uid"],
        phase=RunPhase(report["phase"]),
        started_at=report["started_at"],
        outcome=None if facts is None else _outcome(report, facts),
        progress=report["progress"],
        ready=report["phase"] == RunPhase.RUNNING,
        ports=tuple(report["ports"]),
    )


def _outcome(report: Mapping[str, Any], facts: Mapping[str, Any]) -> RunOutcome:
    containers: tuple[ContainerResult, ...] = ()
    if "reason" in facts or facts.get("message"):  # Otherwise it never had a process.
        result = ContainerResult(
            exit_code=facts.get("exit_code"),
            name=CONTAINER,
            signal=facts.get("signal"),
            reason=facts.get("reason", ""),
            message=facts.get("message", ""),
        )
        containers = (result,)
    return RunOutcome(
        containers=containers,
        conditions=frozenset(facts.get("conditions", ())),
        ended_by=EndedBy(facts["ended_by"]),
        started=facts["started"],
        started_at=report["started_at"],
        ended_at=facts["ended_at"],
        warned_at=facts.get("warned_at"),
        node=report["node"] or None,
        message=facts.get("note", ""),
        log=facts.get("log", ""),
        log_tail=tuple(facts.get("log_tail", ())),
        progress=report["progress"],
        peak_memory=facts.get("peak_memory"),
    )
