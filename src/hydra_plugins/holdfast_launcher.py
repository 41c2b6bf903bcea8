"""A launcher for Hydra's multirun: ``python app.py -m hydra/launcher=holdfast lr=0.1,0.01``.

Each combination is a job. One that fails is retried by its policies, and does not stop the others.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional

from hydra.core.config_store import ConfigStore
from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, configure_log, filter_overrides, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

import holdfast

log = logging.getLogger(__name__)


@dataclass
class HoldfastLauncherConf:
    """What ``hydra.launcher`` can say; see ``holdfast.Client.submit``."""

    _target_: str = "hydra_plugins.holdfast_launcher.HoldfastLauncher"
    queue: Optional[str] = None
    priority: Optional[int] = None
    cpus: Optional[float] = None
    memory: Optional[str] = None
    gpus: Optional[int] = None
    deadline: Optional[str] = None
    grace: Optional[str] = None
    retries: Optional[int] = None
    policies: List[str] = field(default_factory=list)
    on_exceptions: Dict[str, str] = field(default_factory=dict)
    env: Dict[str, str] = field(default_factory=dict)
    labels: Dict[str, str] = field(default_factory=dict)


ConfigStore.instance().store(
    group="hydra/launcher", name="holdfast", node=HoldfastLauncherConf, provider="holdfast_launcher"
)


class HoldfastLauncher(Launcher):
    """Submits the jobs of a sweep, and waits for all of them."""

    def __init__(self, **options: Any) -> None:
        """Remember how to run jobs."""
        super().__init__()
        self._options: Any = {name: value for name, value in options.items() if value not in (None, [], {})}
        self.config: DictConfig | None = None
        self.task_function: TaskFunction | None = None
        self.hydra_context: HydraContext | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Remember what to run."""
        self.config, self.hydra_context, self.task_function = config, hydra_context, task_function

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run a job for each combination; returns what became of each, in order."""
        config: Any = self.config
        setup_globals()
        configure_log(config.hydra.hydra_logging, config.hydra.verbose)
        Path(str(config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
        log.info("Launching %d jobs on Holdfast", len(job_overrides))
        common = (self.hydra_context, config, self.task_function, Singleton.get_state())
        with holdfast.Client.from_env() as client:
            jobs = []
            for number, overrides in enumerate(job_overrides, initial_job_idx):
                name = f"{config.hydra.job.name}-{number}"
                jobs.append(client.submit(_run, (*common, list(overrides), number), name=name, **self._options))
                log.info("\t#%d : %s : job %s", number, " ".join(filter_overrides(overrides)), jobs[-1].id)
            return [_returned(job, overrides) for job, overrides in zip(jobs, job_overrides, strict=True)]


def _run(
    context: HydraContext, config: DictConfig, function: TaskFunction, state: Any, overrides: list[str], number: int
) -> JobReturn:
    """Run one combination in a job of its own; its exception fails the job, so that policies decide about it."""
    Singleton.set_state(state)
    setup_globals()
    own = context.config_loader.load_sweep_config(config, overrides)
    with open_dict(own):
        own.hydra.job.id = holdfast.current().job_id
        own.hydra.job.num = number
    done = run_job(
        hydra_context=context,
        task_function=function,
        config=own,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )
    _ = done.return_value  # raises what the program raised
    return done


def _returned(job: "holdfast.Job[JobReturn]", overrides: Sequence[str]) -> JobReturn:
    """Wait for a job; one that failed returns its exception, which Hydra raises when all are over."""
    try:
        return job.result()
    except Exception as error:
        log.error("job %s failed: %s", job.id, error)
        failed = JobReturn(overrides=list(overrides), status=JobStatus.FAILED)
        failed.return_value = error
        return failed
