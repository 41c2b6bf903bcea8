"""Turns orders into the shim's launch messages, and its reports into observations; pure.

A program's environment is, later ones winning: the base (a short list of the server's own variables), the
job's ``env``, and the ``HOLDFAST_*`` variables that tell it who it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from holdfast.domain.failure import ContainerResult, EndedBy, RunOutcome
from holdfast.engines.process.files import job_directory, run_directory
from holdfast.engines.process.shim.records import CHECKPOINTS, PROGRESS, TERMINATION
from holdfast.ports.engine import Observation, RunPhase

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holdfast.ports.engine import RunOrder

CONTAINER = "main"
"""What the one process of a local run is called in rules."""
INHERITED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"})
"""What programs get of the server's environment, beside ``LC_*``; never its address or token."""
_DEFAULTS = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
_NOT_IN_A_NAME = re.compile(r"[^A-Z0-9]")


def base_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Choose what programs inherit."""
    chosen = {name: value for name, value in environ.items() if name in INHERITED or name.startswith("LC_")}
    return {**_DEFAULTS, **chosen}


def port_variable(name: str) -> str:
    """Return the part of a port's variable after ``HOLDFAST_PORT_``: upper case, ``_`` for what a name cannot hold."""
    return _NOT_IN_A_NAME.sub("_", name.upper())


def launch_message(directory: Path, order: RunOrder) -> dict[str, Any]:
    """Build the shim's launch message; ports are the shim's to choose."""
    main = order.main
    run = run_directory(directory, order.job_id, order.attempt, order.rank)
    identity = {
        "HOLDFAST_JOB_ID": order.job_id,
        "HOLDFAST_JOB_NAME": order.job_name,
        "HOLDFAST_ATTEMPT": str(order.attempt),
        "HOLDFAST_RANK": str(order.rank),
        "HOLDFAST_SIZE": str(order.size),
        "HOLDFAST_ATTEMPT_UID": order.uid,
        "HOLDFAST_TERMINATION_LOG": f"{run}/{TERMINATION}",
        "HOLDFAST_PROGRESS_FILE": f"{run}/{PROGRESS}",
        "HOLDFAST_CHECKPOINT_DIR": f"{job_directory(directory, order.job_id)}/{CHECKPOINTS}",
        "HOLDFAST_MASTER_ADDR": "127.0.0.1",
    }
    return {
        "uid": order.uid,
        "node": order.node,
        "directory": run,
        "argv": list(main.command),
        "env": {**main.env, **identity},
        "cwd": main.working_dir,
        "memory": order.resources.memory if main.memory_limit is None else main.memory_limit,
        "deadline_s": order.deadline_s,
        "grace_s": order.grace_s,
        "ports": [port_variable(name) for name in order.ports],
        "gang": f"{order.job_id}/{order.attempt}" if order.size > 1 else "",
    }


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
    )


def _outcome(report: Mapping[str, Any], facts: Mapping[str, Any]) -> RunOutcome:
    return RunOutcome(
        containers=_containers(facts),
        conditions=frozenset(facts.get("conditions", ())),
        ended_by=EndedBy(facts["ended_by"]),
        started=facts["started"],
        started_at=report["started_at"],
        ended_at=facts["ended_at"],
        node=report["node"] or None,
        message=facts.get("note", ""),
        log_tail=tuple(facts.get("log_tail", ())),
        progress=report["progress"],
        peak_memory=facts.get("peak_memory"),
    )


def _containers(facts: Mapping[str, Any]) -> tuple[ContainerResult, ...]:
    """Return the process as a container; none for a run that never had one."""
    if "reason" not in facts and not facts.get("message"):
        return ()
    result = ContainerResult(
        exit_code=facts.get("exit_code"),
        name=CONTAINER,
        signal=facts.get("signal"),
        reason=facts.get("reason", ""),
        message=facts.get("message", ""),
    )
    return (result,)
