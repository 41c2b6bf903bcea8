"""What ends programs of Armada's jobs from outside, on real processes, and what their watchers are told of it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.e2e.armada_stage import door
from tests.e2e.server import wait_until
from tests.e2e.test_armada_preemption import told_of

if TYPE_CHECKING:
    from tests.e2e.armada_stage import DoorServer

__all__ = ["door"]
FIRST = ["submitted", "queued", "leased", "pending", "running"]
AGAIN = ["leased", "pending"]
ONCE = 'test "$HOLDFAST_ATTEMPT" = 1 && exec sleep 1000; exit 0'


def attach(door: DoorServer, *rules: str, more: str = "") -> None:
    """Create a queue with a policy of these rules."""
    written = ", ".join(f"{{action: Retry, {rule}}}" for rule in rules)
    policy = (
        f"{{apiVersion: armadaproject.io/v1, kind: RetryPolicy, metadata: {{name: p}}, spec: {{retryLimit: 1{more}, "
    )
    assert door.run("create", "-f", "-", text=f"{policy}defaultAction: Fail, rules: [{written}]}}}}").returncode == 0
    assert door.run("create", "queue", "ml", "--retry-policy", "p").returncode == 0


def running(door: DoorServer, program: str) -> str:
    """Submit a job, and wait until it runs."""
    [job] = door.stock('done(submitted("ml", "s", item("sh", "-c", program)))', program=program)
    with door.client() as client:
        wait_until(lambda: client.job(job).state == "Running" and door.programs(), "a program that runs")
        wait_until(lambda: client.attempts(job)[-1].started_at, "its start being known")
    return str(job)


def ended(door: DoorServer) -> Any:  # noqa: ANN401 - lines of JSON
    return door.stock('done(told("ml", "s", 1))')


def drained(door: DoorServer) -> None:
    """Empty the node, and give it work again."""
    with door.client() as client:
        [node] = client.nodes()
    assert door.run("drain", node.name).returncode == 0
    wait_until(lambda: not door.programs(), "an empty node")
    assert door.run("uncordon", node.name).returncode == 0


@pytest.mark.slow
def test_a_drain_returns_the_lease_unless_a_policy_names_evicted(door: DoorServer) -> None:
    door.open()
    attach(door, "onConditions: [OOMKilled]")
    job = running(door, ONCE)
    drained(door)
    events = ended(door)
    assert told_of(events, job) == [*FIRST, "lease_returned", *AGAIN, "succeeded"]
    [returned] = [one for _, kind, _, one in events if kind == "lease_returned"]
    assert returned["runAttempted"]
    assert "is being drained" in returned["reason"]


@pytest.mark.slow
def test_a_drain_that_a_policy_names_is_a_failure_that_is_retried_and_at_last_is_not(door: DoorServer) -> None:
    door.open()
    attach(door, "onConditions: [Evicted]")
    job = running(door, "exec sleep 1000")
    drained(door)
    with door.client() as client:
        wait_until(lambda: client.job(job).attempt == 2 and door.programs(), "the retry")
        wait_until(lambda: len(client.attempts(job)) == 2 and client.attempts(job)[-1].started_at, "its start")
    drained(door)
    events = ended(door)
    assert told_of(events, job) == [*FIRST, "failed", *AGAIN, "running", "failed"]
    retried, final = (one for _, kind, _, one in events if kind == "failed")
    assert (retried["cause"], retried["retryable"]) == ("Evicted", True)
    assert (final["cause"], final.get("retryable", False)) == ("Evicted", False)
    assert final["reason"].startswith("Retry policy: policy retry limit exceeded (1/1)")


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False])
def test_a_place_that_is_lost_is_told_as_an_expired_lease_and_one_failure(door: DoorServer, *, named: bool) -> None:
    """Without a policy it is retried, too; with one that does not name it, it is not."""
    door.open()
    attach(door, "onConditions: [ExecutorLost]" if named else "onConditions: [OOMKilled]")
    job = running(door, ONCE)
    holders = door.holders()
    door.end()
    for process in (*holders, *door.programs()):
        process.kill()
    psutil.wait_procs(holders, 10)
    door.start()
    events = ended(door)
    after = ["lease_expired", "failed", *AGAIN, "succeeded"] if named else ["lease_expired", "failed"]
    assert told_of(events, job) == [*FIRST, *after]
    [failed] = [one for _, kind, _, one in events if kind == "failed"]
    assert failed.get("retryable", False) is named
    assert (failed["failureCategory"], failed["failureSubcategory"]) == ("internal", "lease-expired")
    if not named:
        assert failed["reason"].startswith("Lease expired and not retried by policy: ")


@pytest.mark.slow
def test_a_deadline_and_a_memory_limit_are_retried_by_the_policy_that_names_them(door: DoorServer) -> None:
    import sys  # noqa: PLC0415 - the Python that the program is

    door.open()
    attach(door, "onConditions: [DeadlineExceeded]", "onConditions: [OOMKilled]")
    events, late, fat = door.stock(
        """
        late = item("sh", "-c", ONCE)
        late.pod_spec.activeDeadlineSeconds = 1
        eats = "import time; held = b'x' * (256 << 20); time.sleep(1000)"
        fat = item("sh", "-c", f'test "$HOLDFAST_ATTEMPT" = 1 || exit 0; exec {python} -c "{eats}"')
        late, fat = submitted("ml", "s", late, fat)
        done([told("ml", "s", 2), late, fat])
        """,
        ONCE=ONCE,
        python=sys.executable,
    )
    for job, cause in ((late, "DeadlineExceeded"), (fat, "OOM")):
        assert [kind for kind in told_of(events, job) if kind != "running"] == [
            *FIRST[:-1],
            "failed",
            *AGAIN,
            "succeeded",
        ]
        [failed] = [one for _, kind, of, one in events if (kind, of) == ("failed", job)]
        assert (failed["cause"], failed["retryable"]) == (cause, True)


@pytest.mark.slow
def test_a_back_off_counts_from_the_preemption_and_not_from_the_end_of_a_program_that_takes_its_time(
    door: DoorServer,
) -> None:
    door.open()
    attach(door, "onConditions: [Preempted]", more=", backoff: {initialDelay: 3s, maxDelay: 3s}")
    slow = 'test "$HOLDFAST_ATTEMPT" = 1 || exit 0; trap "sleep 2; exit 1" TERM; sleep 1000 & wait'
    [job, events] = door.stock(
        """
        import time
        long = item("sh", "-c", slow)
        long.pod_spec.terminationGracePeriodSeconds = 10
        [job] = submitted("ml", "s", long)
        while states([job])[job] != "RUNNING": time.sleep(0.02)
        time.sleep(0.5)
        client.preempt_jobs("ml", "s", job)
        done([job, told("ml", "s", 1)])
        """,
        slow=slow,
    )
    assert told_of(events, job) == [*FIRST, "preempting", "failed", *AGAIN, "succeeded"]
    kinds = [kind for _, kind, _, _ in events]
    moments = [one["created"] for _, kind, _, one in events]
    assert all(before <= after for before, after in pairwise(moments))
    asked = _seconds(moments[kinds.index("preempting")])
    again = _seconds(moments[len(kinds) - 1 - kinds[::-1].index("leased")])
    assert 2.9 <= again - asked < 4.5, "not two seconds and three"


def _seconds(moment: str) -> float:
    from datetime import datetime  # noqa: PLC0415 - here only

    return datetime.fromisoformat(moment).timestamp()
