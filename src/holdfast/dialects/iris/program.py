"""Reads a task's program and environment: its command, below a shell that sets up variables and an environment.

A callable is run by ``bash -c 'exec $IRIS_PYTHON -u $IRIS_WORKDIR/_callable_runner.py'``, as in Iris' client.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.job import bounded_env
from holdfast.domain.record import Struct
from holdfast.domain.workloads.preparing import DEFAULT_TIMEOUT_S, Preparation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.dialects.reading import Fields

_MOST_ARGUMENTS, _LONGEST = 10_000, 120_000
_LARGEST_ENV = 60_000
"""Longest text of all variables: they are repeated in a single one, whose length is limited."""
_MOST_STEPS = 100
_BEGIN = """\
export IRIS_TASK_ID="$IRIS_JOB_ID/$HOLDFAST_RANK:$((HOLDFAST_ATTEMPT - 1))" IRIS_ATTEMPT_UID="$HOLDFAST_ATTEMPT_UID"
unset IRIS_JOB_ID
export IRIS_NUM_TASKS="$HOLDFAST_SIZE" IRIS_WORKER_ID="$(uname -n)" IRIS_WORKDIR="$PWD" IRIS_VENV="$PWD/.venv"
export IRIS_OUTPUT_DIR="$PWD/.iris-outputs" UV_PROJECT_ENVIRONMENT="$PWD/.venv"
if [ -n "${HOLDFAST_TOKEN:-}" ]; then
    export IRIS_TASK_TOKEN="$HOLDFAST_TOKEN" IRIS_CONTROLLER_URL="$HOLDFAST_URL" IRIS_CONTROLLER_ADDRESS="$HOLDFAST_URL"
fi
"""
_PORT = 'export IRIS_PORT_{name}="$HOLDFAST_PORT_{name}"\n'
_SET_UP = """\
step=0
for script do
    step=$((step + 1))
    echo "[iris setup] step $step/$#"
    bash -c "$script" || { code=$?; echo "[iris setup] step $step/$# failed: exit code $code" >&2; exit $code; }
done
"""
"""Each script gets a shell of its own, so that an exit or a change of directory affects only that script."""
_RUN = """\
mkdir -p "$IRIS_OUTPUT_DIR"
if [ -f "$IRIS_VENV/bin/activate" ]; then . "$IRIS_VENV/bin/activate"; export IRIS_PYTHON="$IRIS_VENV/bin/python"; fi
exec "$@"
"""


class TaskServer(Struct, frozen=True):
    """The operator's settings for tasks."""

    url: str
    """The server's address for tasks."""
    python: str
    """The Python that runs callables, unless setup scripts activate another environment."""
    prepare_s: float = DEFAULT_TIMEOUT_S
    """Seconds that setup scripts may take before the launch fails."""


class TaskProgram(Struct, frozen=True):
    """What is started."""

    command: tuple[str, ...]
    env: dict[str, str]
    prepare: Preparation | None = None
    """What runs before it, in the same place."""


def is_called(request: Mapping[str, Any]) -> bool:
    """Whether a launch runs the configured Python: no setup scripts may activate another environment."""
    entry = request.get("entrypoint") or {}
    argv = (entry.get("run_command") or {}).get("argv") or ()
    return not entry.get("setup_commands") and any("IRIS_PYTHON" in str(argument) for argument in argv)


def program_of(fields: Fields, server: TaskServer, ports: Sequence[str]) -> TaskProgram | None:
    """Read what each task runs; ``None`` if that is nothing.

    Args:
        fields: The launch.
        server: What a task learns of this server, and may use of it.
        ports: The names of ports.
    """
    entry = fields.nested("entrypoint")
    command = None if entry is None else entry.nested("run_command")
    argv = None if command is None else command.texts("argv", most=_MOST_ARGUMENTS, longest=_LONGEST)
    if not argv:
        fields.problem("entrypoint.run_command.argv", "is required: what each task runs")
        return None
    environment = fields.nested("environment")
    own = {} if environment is None else bounded_env(environment, "env_vars", largest=_LARGEST_ENV)
    for name in own:
        if name.startswith("HOLDFAST_"):
            fields.problem(f"environment.env_vars.{name[:80]}", "cannot be the name of a variable here")
    setup = [] if environment is None else environment.texts("setup_scripts", most=_MOST_STEPS, longest=_LONGEST) or []
    steps = [] if entry is None else entry.texts("setup_commands", most=_MOST_STEPS, longest=_LONGEST) or []
    begin = _BEGIN + "".join(_PORT.format(name=port.upper().replace("-", "_")) for port in ports)
    env = {
        **own,
        "IRIS_CONTROLLER_URL": server.url,
        "IRIS_CONTROLLER_ADDRESS": server.url,
        "IRIS_BIND_HOST": "127.0.0.1",
        "IRIS_ADVERTISE_HOST": "127.0.0.1",
        "IRIS_PYTHON": server.python,
        "IRIS_BUNDLE_ID": str(fields.value.get("bundle_id") or ""),
        "IRIS_JOB_SETUP_SCRIPTS": json.dumps(setup),
        "IRIS_JOB_ENV": json.dumps(own),
        "IRIS_TASK_RESOURCES": json.dumps(fields.value.get("resources") or {}),
    }
    prepare = Preparation(("bash", "-c", begin + _SET_UP, "iris", *steps), server.prepare_s) if steps else None
    return TaskProgram(("/bin/sh", "-c", begin + _RUN, "iris", *argv), env, prepare)
