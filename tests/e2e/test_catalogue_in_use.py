"""What becomes of running work when what it names is deleted, replaced or renamed under it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import pytest

from holdfast.errors import Conflict, HoldfastError, InvalidManifest
from tests.damage import native
from tests.e2e.server import until, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import Client
    from tests.e2e.server import Server

CALLERS = 8
FAILS_ONCE_RELEASED = 'while [ ! -e "$GATE" ]; do sleep 0.02; done; echo odd; exit 3'


@pytest.fixture(params=["sqlite", "postgresql"])
def anywhere(request: pytest.FixtureRequest, server: Server) -> Server:
    """The server, on each kind of database."""
    if request.param == "postgresql":
        server.environ = {**server.environ, "HOLDFAST_DATABASE": request.getfixturevalue("postgres_url")}
    return server


def policy(name: str, **spec: object) -> dict[str, object]:
    return native("RetryPolicy", name, **{"retryLimit": 9, "defaultAction": "Retry", **spec})


def job_of(name: str, shell: str, **spec: object) -> dict[str, object]:
    return native("Job", name, **{"shell": shell, **spec})


def waiting(client: Client, gate: Path, **spec: object) -> str:
    """Submit a job that fails as soon as a file is there, and return its id once it runs."""
    job = client.submit(job_of("waits", FAILS_ONCE_RELEASED, env={"GATE": str(gate)}, **spec)).id
    until(client, job, lambda view: view.state == "Running")
    return job


@pytest.mark.slow
def test_a_policy_stays_while_running_work_names_it_and_a_change_of_it_decides(server: Server, tmp_path: Path) -> None:
    with server.start() as client:
        client.policies.create(policy("patient"))
        job = waiting(client, tmp_path / "gate", retryPolicies=["patient"])
        array = job_of("sweep", "sleep 600", array={"indices": "0-1"}, retryPolicies=["patient"])
        sweep = client.submit_array(array).id
        refused = server.run("delete", "retrypolicy", "patient")
        assert refused.returncode == 4
        assert f"retry policy 'patient' is used by array 'sweep' ({sweep}), job 'waits' ({job})" in refused.stderr
        assert "wait for what has not ended, or cancel it; until then it can be changed" in refused.stderr
        client.policies.put("patient", policy("patient", defaultAction="Fail"))
        (tmp_path / "gate").touch()
        until(client, job, lambda view: view.state == "Failed")
        assert "policy patient (revision 2)" in " ".join(client.why(job).summary)
        client.cancel_array(sweep)
        wait_until(lambda: client.array(sweep).state == "Cancelled", "an array that has ended")
        assert server.run("delete", "retrypolicy", "patient").returncode == 0
        with pytest.raises(InvalidManifest, match="retry policy 'patient' does not exist"):
            client.submit(job_of("late", "true", retryPolicies=["patient"]))


@pytest.mark.slow
def test_notifiers_categories_and_secrets_that_are_gone_when_a_job_fails_are_told_of(
    server: Server, tmp_path: Path
) -> None:
    secret = server.data / "secrets" / "hub"
    with server.start() as client:
        secret.parent.mkdir(mode=0o700, exist_ok=True)
        secret.write_text("hub_1234567890")
        client.notifiers.create(native("Notifier", "ops", type="webhook", url="https://127.0.0.1:1"))
        client.categories.create(native("FailureCategory", "odd", rules=[{"onLog": {"pattern": "odd"}}]))
        env = {"GATE": str(tmp_path / "gate"), "HUB": {"secret": "hub"}}
        again = [{"action": "Retry", "onCategory": ["odd"], "backoff": {"initialDelay": "0s"}}]
        retry = {"rules": again, "defaultAction": "Fail"}
        command = f"cat {secret}; {FAILS_ONCE_RELEASED}"
        job = client.submit(job_of("waits", command, env=env, notify=["ops"], retry=retry)).id
        until(client, job, lambda view: view.state == "Running")
        secret.unlink()
        (tmp_path / "gate").touch()
        failed = until(client, job, lambda view: view.state == "Failed")
        assert failed.reason.startswith("LaunchFailed: there is no secret 'hub'")
        assert client.attempts(job)[0].category == "odd"

        (tmp_path / "gate").unlink()
        other = waiting(client, tmp_path / "gate", notify=["ops"], retry=retry)
        client.notifiers.delete("ops")
        client.categories.delete("odd")
        (tmp_path / "gate").touch()
        until(client, other, lambda view: view.state == "Failed")
        assert [one.category for one in client.attempts(other)] == [None]
        wait_until(lambda: [*client.notifications(about=other, state="Dead")], "a notification that is given up")
        [dead] = client.notifications(about=other)
        assert "notifier 'ops' does not exist" in server.run("notify", "show", dead.id).stdout


@pytest.mark.slow
def test_submissions_and_deletions_at_one_moment_leave_no_work_that_names_what_is_gone(anywhere: Server) -> None:
    """Everything that names what is gone would have failed for want of it, or waited without a word."""
    with anywhere.start() as client, ThreadPoolExecutor(CALLERS) as callers:
        ask = partial(callers.map, partial(asked, anywhere))
        for number in range(6):
            name = f"p{number}"
            client.policies.create(policy(name))
            client.queues.create(native("Queue", name))
            named = {"retryPolicies": [name], "queue": name, "resources": {"cpu": 0.01}}
            array = job_of(f"{name}-array", "exit 3", array={"indices": "0-1"}, **named)
            singly = [job_of(f"{name}-{which}", "exit 3", **named) for which in range(3)]
            calls = [*(("submit", one) for one in singly), ("submit_array", array)]
            answers = [*ask([*calls, ("policies.delete", name), ("queues.delete", name)])]
            assert {type(one) for one in answers if isinstance(one, HoldfastError)} <= {Conflict, InvalidManifest}
        there = {one.name for one in client.policies.list()} & {one.name for one in client.queues.list()}
        jobs = list(client.full_jobs())
        assert {job.queue for job in jobs} <= there
        for job in jobs:
            until(client, job.id, lambda view: view.attempt > 1)
        assert "does not exist" not in "".join(job.reason for job in client.full_jobs())


def asked(server: Server, call: tuple[str, object]) -> object:
    """Ask as a caller of one's own, and return the answer or the error."""
    name, argument = call
    with server.client() as client:
        try:
            return attrgetter(name)(client)(argument)
        except HoldfastError as error:
            return error


@pytest.mark.slow
def test_a_rule_that_is_put_above_another_takes_over_nothing_that_was_counted(anywhere: Server) -> None:
    again = {"action": "Retry", "onExitCodes": {"operator": "In", "values": [7]}, "retryLimit": 3}
    above = {"action": "Retry", "onConditions": ["OOMKilled"], "retryLimit": 3}
    backoff = {"initialDelay": "700ms", "multiplier": 1}
    with anywhere.start() as client:
        client.policies.create(policy("infra", rules=[again], backoff=backoff, defaultAction="Fail"))
        job = client.submit(job_of("fails", "exit 7", retryPolicies=["infra"])).id
        until(client, job, lambda view: view.attempt >= 2)
        client.policies.put("infra", policy("infra", rules=[above, again], backoff=backoff, defaultAction="Fail"))
        ended = until(client, job, lambda view: view.state == "Failed")
        [(counter, count)] = ended.counters.items()
        assert (ended.attempt, counter.rpartition("-")[0], count) == (4, "infra/exit-7", 3)
