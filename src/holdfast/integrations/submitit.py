"""An executor of submitit, by its own plugin interface: ``submitit.AutoExecutor(folder, cluster="holdfast")``.

Everything a run does is submitit's own code, its checkpoint protocol too: told to stop, a run checkpoints and ends
with a code that a rule of its job answers with another, uncounted attempt.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from submitit.core import core, job_environment, logger, utils

from holdfast.sdk.client import Client
from holdfast.sdk.manifest import Options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from submitit.core.utils import DelayedSubmission

REQUEUE = 144
"""The exit code of a run that has checkpointed and is to be started again, as of submitit's local executor."""
_STATES = {
    "Queued": "PENDING",
    "Waiting": "PENDING",
    "Held": "PENDING",
    "Running": "RUNNING",
    "BackOff": "REQUEUED",
    "Succeeded": "COMPLETED",
    "Failed": "FAILED",
    "Cancelled": "CANCELLED",
}
_GONE = "GONE"
_OWN = frozenset({"annotations", "env", "labels", "working_dir", "name", "gang", "deadline", "grace", "logs"})
"""Options that have another name in submitit, or are set by it."""
_STOPPED = "UncompletedJobError: Job not requeued because"
"""In the trace of a task that was stopped and could not be resumed."""
_DEFAULT_MIN = 5
"""The default of submitit for ``timeout_min``."""
_SIGNAL_DELAY_S = 90


@cache
def client() -> Client:
    """Return the client that all executors and jobs of this program share."""
    return Client.from_env()


class HoldfastInfoWatcher(core.InfoWatcher):
    """Asks for the states of all jobs at once."""

    def get_state(self, job_id: str, mode: str = "standard") -> str:
        """Return a job's state in submitit's words."""
        return self.get_info(job_id, mode).get("State", "UNKNOWN")

    def update(self) -> None:
        """Request the states of unfinished jobs."""
        self._num_calls += 1
        unfinished = sorted(self._registered - self._finished)
        states = client().api.states(unfinished) if unfinished else {}
        self._info_dict.update(
            {job_id: {"JobID": job_id, "State": _STATES.get(states.get(job_id, ""), _GONE)} for job_id in unfinished}
        )
        self._last_status_check = time.time()
        self._finished.update(job_id for job_id in unfinished if self.is_done(job_id, mode="cache"))


class AttemptPaths(utils.JobPaths):
    """The paths of one attempt's files, so that its result is not taken for that of another."""

    attempt = 1

    @property
    def result_pickle(self) -> Path:
        """Return the file of the attempt's result."""
        return self._format_id(self.folder / f"%j_%t_{self.attempt}_result.pkl")


class HoldfastJob(core.Job[core.R]):
    """A job; over when Holdfast says so, with the result of its last attempt."""

    _results_timeout_s = 0
    watcher = HoldfastInfoWatcher()

    def __init__(self, folder: Path | str, job_id: str, tasks: Sequence[int] = (0,)) -> None:
        super().__init__(folder, job_id, tasks)
        self._paths = AttemptPaths(folder, job_id=job_id, task_id=self.task_id)

    def done(self, force_check: bool = True) -> bool:
        """Whether it is over for good."""
        return self.watcher.is_done(self.job_id, mode="force" if force_check else "standard")

    def wait(self) -> None:
        """Wait until it is over for good."""
        client().job(self.job_id).wait()

    def results(self) -> list[core.R]:
        """Return what its tasks returned, or raise why one failed."""
        error = self.exception() if self._sub_jobs else None
        if error is not None:
            raise error
        return super().results()

    def exception(self) -> utils.UncompletedJobError | utils.FailedJobError | None:
        """Return why it failed: of many tasks one that failed by itself, as the others are stopped with it."""
        if not self._sub_jobs:
            return super().exception()
        errors = [error for error in (task.exception() for task in self._sub_jobs) if error is not None]
        own = [error for error in errors if isinstance(error, utils.FailedJobError) and _STOPPED not in str(error)]
        return next(iter(own or errors), None)

    def _get_outcome_and_result(self) -> tuple[str, Any]:
        """Read the result of its last attempt.

        Raises:
            UncompletedJobError: There is none, or the job was cancelled, or failed after the call had returned.
        """
        job = client().job(self.job_id)
        view = job.view()
        self._paths.attempt = view.attempt  # type: ignore[attr-defined] # as `__init__` made it
        if view.state in {"Succeeded", "Failed"} and self._paths.result_pickle.exists():
            outcome, result = super()._get_outcome_and_result()
            if outcome == "error" or view.state == "Succeeded":
                return outcome, result
        why = job.why()
        message = f"Job {self.job_id} (task: {self.task_id}) has no result (state: {self.state}): {why.headline}"
        raise utils.UncompletedJobError("\n".join([message, *why.summary, self.stderr() or ""]).rstrip())

    @property
    def state(self) -> str:
        """Its state now, in submitit's words."""
        return self.watcher.get_state(self.job_id, mode="force")

    def cancel(self, check: bool = True) -> None:
        """Cancel it, also while it runs; with ``check`` wait for its end."""
        job = client().job(self.job_id)
        job.cancel("cancelled through submitit")
        if check:
            job.wait()

    def _get_logs_string(self, name: str) -> str | None:
        """Read the logs of all its attempts; ``None`` for stderr if it goes to stdout."""
        job = client().job(self.job_id)
        view, stderr = job.view(), name == "stderr"
        if not view.attempts or (stderr and view.spec.get("logs") != "separate"):
            return None
        rank = self._tasks[0]
        return "".join(job.logs(attempt=attempt.number, rank=rank, stderr=stderr) for attempt in view.attempts)


class HoldfastJobEnvironment(job_environment.JobEnvironment):
    """Where a run is."""

    _env: ClassVar[dict[str, str]] = {
        "job_id": "HOLDFAST_JOB_ID",
        "num_tasks": "HOLDFAST_SIZE",
        "num_nodes": "SUBMITIT_HOLDFAST_NODES",
        "node": "SUBMITIT_HOLDFAST_NODE",
        "global_rank": "HOLDFAST_RANK",
        "local_rank": "HOLDFAST_RANK",
    }

    @property
    def paths(self) -> AttemptPaths:
        """Return where the files of this attempt are."""
        job_paths = AttemptPaths(os.environ["SUBMITIT_FOLDER"], job_id=self.job_id, task_id=self.global_rank)
        job_paths.attempt = int(os.environ["HOLDFAST_ATTEMPT"])
        return job_paths

    def _handle_signals(self, paths: utils.JobPaths, submission: DelayedSubmission) -> None:
        super()._handle_signals(paths, submission)
        handler = job_environment.SignalHandler(self, paths, submission)
        signal.signal(signal.SIGTERM, handler.checkpoint_and_try_requeue)

    def _requeue(self, countdown: int) -> None:
        logger.get_logger().info(f"Requeued job {self.job_id} ({countdown} remaining timeouts)")
        sys.exit(REQUEUE)


class HoldfastExecutor(core.PicklingExecutor):
    """Submits to Holdfast; parameters are submitit's general ones, and options of ``holdfast.Client.submit``."""

    job_class = HoldfastJob

    def __init__(self, folder: Path | str, max_num_timeout: int = 3, max_pickle_size_gb: float = 1.0) -> None:
        """Remember where submitit's files go; ``max_num_timeout`` is how often a job may checkpoint at its limit."""
        super().__init__(folder, max_num_timeout=max_num_timeout, max_pickle_size_gb=max_pickle_size_gb)
        self._throttling = 0.0

    @classmethod
    def affinity(cls) -> int:
        """Return 0: available, but only used when it is chosen."""
        return 0

    @classmethod
    def _valid_parameters(cls) -> set[str]:
        return {*Options.__annotations__} - _OWN | {"signal_delay_s", "env", "labels"}

    def _internal_update_parameters(self, **kwargs: Any) -> None:
        if kwargs.get("nodes", 1) > 1:
            msg = "Holdfast runs all tasks of a job on one machine: use nodes=1"
            raise ValueError(msg)
        super()._internal_update_parameters(**kwargs)

    def _num_tasks(self) -> int:
        return int(self.parameters.get("tasks_per_node", 1))

    def _submit_command(self, command: str) -> core.Job[Any]:
        del command
        words = [sys.executable, "-u", "-m", "submitit.core._submit", str(self.folder)]
        job = client().submit(words, **self._options())
        return HoldfastJob(folder=self.folder, job_id=job.id, tasks=list(range(self._num_tasks())))

    def _options(self) -> Options:
        parameters = dict(self.parameters)
        tasks, limit_s = self._num_tasks(), parameters.get("timeout_min", _DEFAULT_MIN) * 60
        warning_s = min(parameters.get("signal_delay_s", _SIGNAL_DELAY_S), limit_s / 2)
        written = parameters.get("retry", ())
        chosen: dict[str, Any] = {name: parameters[name] for name in self._valid_parameters() & {*parameters}}
        chosen.pop("signal_delay_s", None)
        general = {
            "name": parameters.get("name"),
            "cpus": parameters.get("cpus_per_task"),
            "gpus": -(-parameters["gpus_per_node"] // tasks) if parameters.get("gpus_per_node") else None,
            "memory": f"{parameters['mem_gb'] * 1024 / tasks:.0f}Mi" if parameters.get("mem_gb") else None,
        }
        chosen = {**{name: value for name, value in general.items() if value is not None}, **chosen}
        chosen["env"] = {**parameters.get("env", {}), "SUBMITIT_EXECUTOR": self.name()}
        chosen["logs"] = "together" if parameters.get("stderr_to_stdout") else "separate"
        chosen["retry"] = [_REQUEUED, *([written] if isinstance(written, dict) else written)]
        return {**chosen, "gang": tasks, "deadline": f"{limit_s - warning_s}s", "grace": f"{warning_s}s"}  # type: ignore[typeddict-item] # options by name

    # No command submits a job, so what submitit asks about one has no answer.

    def _make_submission_file_text(self, command: str, uid: str) -> str:
        return f"# {command} {uid}"

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:
        return [str(submission_file_path)]

    @staticmethod
    def _get_job_id_from_submission_command(string: bytes | str) -> str:
        return str(string)


_REQUEUED = {
    "name": "submitit",
    "defaultAction": "Fail",
    "rules": [
        {
            "name": "requeue",
            "action": "Ignore",
            "onExitCodes": {"operator": "In", "values": [REQUEUE]},
            "backoff": {"initialDelay": "0s"},
        }
    ],
}
"""What has checkpointed is started again, and not counted."""
