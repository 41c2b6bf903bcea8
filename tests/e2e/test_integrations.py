"""The libraries people already use, as they are on PyPI, with Holdfast behind them: their own examples and tests."""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
import threading
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import joblib
import pytest
import submitit

import holdfast
from holdfast.integrations import joblib as joblib_backend
from holdfast.integrations import submitit as submitit_plugin
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("integrations") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_DATA", str(place))
        patch.setenv("HOLDFAST_CPUS", "4")
        yield place


@pytest.fixture(scope="module")
def client(data: Path) -> Iterator[holdfast.Client]:
    assert not data.exists()
    submitit_plugin.client.cache_clear()
    made = submitit_plugin.client()
    wait_until(lambda: list(made.api.nodes()), "a node, of which joblib counts the places")
    yield made
    made.close()
    submitit_plugin.client.cache_clear()


def test_joblib_runs_the_examples_of_its_documentation(client: holdfast.Client) -> None:
    joblib_backend.register()
    with joblib.parallel_config(backend="holdfast", client=client, cpus=0.5, n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(sqrt)(number**2) for number in range(10))
        assert found == [float(number) for number in range(10)]
        results = joblib.Parallel(return_as="generator")(joblib.delayed(sqrt)(number) for number in (4, 9))
        assert next(results) == 2.0
        assert list(results) == [3.0]
    assert len(list(client.api.jobs(name="joblib"))) >= 2


def test_joblib_raises_what_a_call_raised_and_stops_the_rest(client: holdfast.Client) -> None:
    joblib_backend.register()

    def inverse(number: int) -> float:
        if number > 1:
            threading.Event().wait(60)
        return 1 / number

    parallel = joblib.Parallel(n_jobs=-1, backend=joblib_backend.HoldfastBackend(client=client, name="inverse"))
    with pytest.raises(ZeroDivisionError) as caught:
        parallel(joblib.delayed(inverse)(number) for number in (2, 0, 3))
    assert ", in inverse" in str(caught.value.__cause__)
    ended = holdfast.wait([client.job(each.id) for each in client.api.jobs(name="inverse")], timeout=50)
    assert ended.not_done == set()


@pytest.mark.slow
def test_a_program_in_which_a_call_of_joblib_fails_ends(tmp_path: Path) -> None:
    program = (
        "import joblib, time\nfrom holdfast.integrations.joblib import register\nregister()\n"
        "joblib.Parallel(n_jobs=2, backend='holdfast')(joblib.delayed(time.sleep)(s) for s in (600, -1))\n"
    )
    environ = {**os.environ, "HOLDFAST_DATA": str(tmp_path / "data"), "HOLDFAST_CPUS": "2"}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.stderr.rstrip().endswith("ValueError: sleep length must be non-negative")


def test_joblib_retries_by_policy(client: holdfast.Client) -> None:
    joblib_backend.register()

    def attempt() -> int:
        number = holdfast.current().attempt
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with joblib.parallel_config(backend="holdfast", client=client, retries=1):
        assert joblib.Parallel(n_jobs=2)([joblib.delayed(attempt)()]) == [2]


@pytest.mark.slow
def test_joblib_runs_no_more_calls_at_a_time_than_it_was_told_to(client: holdfast.Client, tmp_path: Path) -> None:
    """There are places for eight, and joblib sends twice as many as it was told to have at a time."""
    joblib_backend.register()
    here = tmp_path / "here"
    here.mkdir()

    def met(number: int) -> int:
        mine = here / str(number)
        mine.touch()
        threading.Event().wait(0.5)
        seen = len(list(here.iterdir()))
        mine.unlink()
        return seen

    for most in (1, 2):
        with joblib.parallel_config(backend="holdfast", client=client, cpus=0.5, n_jobs=most):
            seen = joblib.Parallel(batch_size=1, pre_dispatch="all")(joblib.delayed(met)(number) for number in range(6))
        assert max(seen) == most


def add(first: int, second: int) -> int:
    return first + second


@pytest.mark.slow
def test_submitit_runs_the_examples_of_its_readme(client: holdfast.Client, tmp_path: Path) -> None:
    executor = submitit.AutoExecutor(folder=tmp_path / "log_test", cluster="holdfast")
    executor.update_parameters(timeout_min=1, cpus_per_task=1, mem_gb=1.5, holdfast_priority=7, name="added")
    job = executor.submit(add, 5, 7)
    assert job.result() == 12
    assert job.state == "COMPLETED"
    assert "Job completed successfully" in (job.stdout() or "")
    jobs = executor.map_array(add, [1, 2], [10, 20])
    assert [each.result() for each in jobs] == [11, 22]
    with executor.batch():
        batched = [executor.submit(add, number, 1) for number in range(2)]
    assert [each.result() for each in batched] == [1, 2]
    view = client.api.job(job.job_id)
    assert (view.name, view.priority, view.resources.memory) == ("added", 7, "1536Mi")


@pytest.mark.slow
def test_submitit_retries_by_policy_and_is_done_only_then(client: holdfast.Client, tmp_path: Path) -> None:
    def flaky() -> int:
        number = holdfast.current().attempt
        if number < 3:
            raise ConnectionError(number)
        return number

    executor = submitit.AutoExecutor(folder=tmp_path, cluster="holdfast")
    executor.update_parameters(holdfast_retries=2)
    job = executor.submit(flaky)
    assert job.result() == 3
    assert client.api.job(job.job_id).attempt == 3


def test_submitit_takes_no_result_of_an_attempt_that_was_retried(client: holdfast.Client, tmp_path: Path) -> None:
    def crash(number: int, how: Callable[[], object]) -> str:
        if holdfast.current().attempt == 1:
            return how()  # type: ignore[return-value] # or it raises
        os.kill(os.getpid(), number)
        raise AssertionError

    def crash_after_return() -> str:
        atexit.register(os.kill, os.getpid(), signal.SIGSEGV)
        return "of attempt 1"

    def lose_connection() -> None:
        raise ConnectionError

    executor = submitit.AutoExecutor(folder=tmp_path, cluster="holdfast")
    executor.update_parameters(timeout_min=60, holdfast_retries=1)
    jobs = [executor.submit(crash, signal.SIGKILL, how) for how in (crash_after_return, lose_connection)]
    for job in jobs:
        with pytest.raises(submitit.core.utils.UncompletedJobError, match=r"state: FAILED.*\n.*SIGKILL"):
            job.result()
    executor.update_parameters(holdfast_retries=0)
    with pytest.raises(submitit.core.utils.UncompletedJobError, match="SIGSEGV"):
        executor.submit(crash_after_return).result()
    assert {client.api.job(job.job_id).attempt for job in jobs} == {2}


def test_submitit_checkpoints_when_it_is_told_to_stop_and_goes_on(client: holdfast.Client, tmp_path: Path) -> None:
    """A preemption as its documentation tests one: the signal that Slurm sends."""

    class Counting(submitit.helpers.Checkpointable):
        def __init__(self) -> None:
            self.count = 0

        def __call__(self, until: int) -> tuple[int, int]:
            while self.count < until:
                self.count += 1
                if self.count == 2:
                    os.kill(os.getpid(), signal.SIGUSR2)
            return self.count, holdfast.current().attempt

    executor = submitit.AutoExecutor(folder=tmp_path, cluster="holdfast")
    executor.update_parameters(timeout_min=60)
    job = executor.submit(Counting(), 5)
    assert job.result() == (5, 2)
    decision = client.api.why(job.job_id, attempt=1).decision
    assert decision is not None
    assert (decision.action, decision.policy, decision.rule) == ("Ignore", "submitit", "requeue")
    assert "Calling checkpoint method" in (job.stdout() or "")


def _second_fails() -> None:
    if submitit.JobEnvironment().global_rank == 1:
        msg = "the second of three"
        raise ValueError(msg)
    threading.Event().wait(60)


@pytest.mark.slow
def test_submitit_tells_which_of_many_tasks_failed_by_itself(client: holdfast.Client, tmp_path: Path) -> None:
    assert client.api.connection is not None
    executor = submitit.AutoExecutor(folder=tmp_path, cluster="holdfast")
    executor.update_parameters(tasks_per_node=3)
    job = executor.submit(_second_fails)
    with pytest.raises(submitit.core.utils.FailedJobError, match="the second of three"):
        job.results()


def test_submitit_keeps_stdout_and_stderr_apart_unless_told_otherwise(client: holdfast.Client, tmp_path: Path) -> None:
    assert client.api.connection is not None
    executor = submitit.AutoExecutor(folder=tmp_path, cluster="holdfast")
    apart = executor.submit(os.system, "echo out; echo err >&2")
    executor.update_parameters(stderr_to_stdout=True)
    together = executor.submit(os.system, "echo out; echo err >&2")
    assert [apart.result(), together.result()] == [0, 0]
    assert ("out\n" in str(apart.stdout()), "err\n" in str(apart.stdout())) == (True, False)
    assert apart.stderr() == "err\n"
    assert "err\n" in str(together.stdout())
    assert together.stderr() is None


def test_submitit_cancels(client: holdfast.Client, tmp_path: Path) -> None:
    assert client.api.connection is not None
    executor = submitit.AutoExecutor(folder=tmp_path, cluster="holdfast")
    job = executor.submit(_wait)
    job.cancel()
    assert job.done()
    assert job.state == "CANCELLED"
    with pytest.raises(submitit.core.utils.UncompletedJobError):
        job.result()


def _wait() -> None:
    threading.Event().wait(60)


_MORE_TRIES = 10
OWN_TESTS = "map_array or submit_array or local_error or pickle_output or stdout or requeuing or checkpoint"


@pytest.mark.slow
@pytest.mark.timeout(480)
def test_submitit_passes_its_own_tests_of_an_executor(data: Path, tmp_path: Path) -> None:
    """Those of its local executor, with Holdfast's in its place.

    What they test of processes is left out, and which of several failed tasks is told: the first stops the others here.
    Some wait for a second and no longer, which a busy machine may take to start a Python: these are tried again, alone.
    """
    (tmp_path / "replaced.py").write_text(
        "from submitit.local import local\n"
        "from holdfast.integrations.submitit import HoldfastExecutor, HoldfastJob\n"
        "local.LocalExecutor, local.LocalJob = HoldfastExecutor, HoldfastJob\n"
    )
    words = ["-m", "pytest", "-q", "-p", "replaced", "-p", "no:cacheprovider", "-c", os.devnull]
    words += ["--pyargs", "submitit.local.test_local", "-k"]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "HOLDFAST_DATA": str(data.parent / "own")}

    def tried(chosen: str) -> tuple[str, list[str]]:
        line = [sys.executable, *words, chosen]
        done = subprocess.run(line, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False)
        return done.stdout, re.findall(r"^FAILED ::(\w+)", done.stdout, re.MULTILINE)

    told, failed = tried(f"{OWN_TESTS} or load_submission or weird")
    assert f"{15 - len(failed)} passed" in told, told[-4000:]
    for _ in range(_MORE_TRIES):
        told, failed = tried(" or ".join(failed)) if failed else (told, failed)
    assert failed == [], told[-4000:]


APP = """
import os
from dataclasses import dataclass

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig


@dataclass
class Config:
    lr: float = 0.1
    model: str = "small"


ConfigStore.instance().store(name="config", node=Config)


@hydra.main(version_base=None, config_name="config")
def app(cfg: Config) -> float:
    attempt = int(os.environ["HOLDFAST_ATTEMPT"])
    if cfg.model == "flaky" and attempt == 1:
        raise ConnectionError("peer went away")
    if cfg.model == "broken":
        raise ValueError("no such model")
    job = HydraConfig.get().job
    print(f"{cfg.model} {cfg.lr} attempt {attempt} number {job.num} {os.environ['HOLDFAST_JOB_ID'] == job.id}")
    return cfg.lr


if __name__ == "__main__":
    app()
"""


def sweep(folder: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(APP)
    words = [sys.executable, "app.py", "-m", "hydra/launcher=holdfast", "hydra.launcher.cpus=0.5", *overrides]
    environ = {**os.environ, "HOLDFAST_DATA": str(folder / "data"), "HOLDFAST_CPUS": "4"}
    return subprocess.run(words, cwd=folder, env=environ, capture_output=True, text=True, timeout=110, check=False)


@pytest.mark.slow
def test_hydra_launches_a_sweep_and_retries_what_failed_by_its_class(tmp_path: Path) -> None:
    done = sweep(tmp_path, "lr=0.1,0.01", "model=small,flaky", "+hydra.launcher.on_exceptions.ConnectionError=retry")
    assert done.returncode == 0, done.stderr
    logs = sorted(path.read_text() for path in (tmp_path / "data" / "runs" / "jobs").glob("*/*/log"))
    said = sorted(line for text in logs for line in text.splitlines() if " number " in line)
    assert said == [
        "flaky 0.01 attempt 2 number 3 True",
        "flaky 0.1 attempt 2 number 1 True",
        "small 0.01 attempt 1 number 2 True",
        "small 0.1 attempt 1 number 0 True",
    ]
    assert len(list(tmp_path.glob("multirun/*/*/*/.hydra/config.yaml"))) == 4


def test_hydra_lets_the_others_finish_and_raises_what_one_raised(tmp_path: Path) -> None:
    done = sweep(tmp_path, "model=broken,small")
    assert done.returncode == 1
    assert "ValueError: no such model" in done.stderr + done.stdout
    logs = "".join(path.read_text() for path in (tmp_path / "data" / "runs" / "jobs").glob("*/*/log"))
    assert "small 0.1 attempt 1 number 1" in logs
