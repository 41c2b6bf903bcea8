"""The commands of Armada's users, in their words, against a real server with its door open."""

from __future__ import annotations

import io
import re
import textwrap
from typing import TYPE_CHECKING

import pytest

from holdfast.cli.armada.main import run
from holdfast.cli.context import Cli
from tests.e2e.armadactl_stage import JOBS, say, server, write
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.e2e.armada_stage import DoorServer
    from tests.e2e.armadactl_stage import Said

__all__ = ["say", "server"]

DOCUMENT = """
    apiVersion: armadaproject.io/v1
    kind: RetryPolicy
    metadata:
      name: ml-training
    spec:
      retryLimit: 5
      defaultAction: Fail
      backoff:
        initialDelay: 0s
      antiAffinity:
        mode: none
      rules:
        - action: Retry
          onConditions:
            - Preempted
            - Evicted
          antiAffinity:
            mode: node
        - action: Retry
          onConditions:
            - OOMKilled
          retryLimit: 3
        - action: Retry
          onExitCodes:
            operator: In
            values: [137]
        - action: Retry
          onFailureCategory: [cuda_error, infiniband_error]
"""
FLAT = """
    apiVersion: armadaproject.io/v1beta1
    kind: RetryPolicy
    name: infra
    retryLimit: 10
    defaultAction: Fail
    rules:
      - {action: Fail, onCategory: user-error}
      - {action: Retry, onCategory: gpu, onSubcategory: transient}
"""
QUEUE = """
    apiVersion: armadaproject.io/v1beta1
    kind: Queue
    name: vision
    priorityFactor: 2.0
    labels: {team: vision}
    retryPolicies: [infra, ml-training]
"""


MISSING = "rpc error: code = NotFound desc = error: could not find"
TOLD: tuple[tuple[tuple[str, ...], int, str, str], ...] = (
    (("create", "-f", "document.yaml", "--dry-run"), 0, "", ""),
    (("get", "retry-policies"), 0, "kind: RetryPolicy\nretryPolicies:", ""),
    (("create", "-f", "document.yaml"), 0, "Created retry policy ml-training\n", ""),
    (("create", "retry-policy", "-f", "flat.yaml"), 0, "Created retry policy infra\n", ""),
    (("update", "retry-policy", "-f", "flat.yaml"), 0, "Updated retry policy infra\n", ""),
    (("update", "-f", "document.yaml"), 0, "Updated retry policy ml-training\n", ""),
    (("create", "-f", "queue.yaml", "--dry-run"), 0, "", ""),
    (
        ("get", "queue", "vision"),
        1,
        "",
        f'[armadactl.GetQueue] error getting queue vision: get queue info request failed: {MISSING} queue "vision"',
    ),
    (("create", "-f", "queue.yaml"), 0, "Created queue vision\n", ""),
    (
        ("create", "queue", "a", "--retry-policies", "ghost"),
        1,
        "",
        'error creating queue: retry policies do not exist: "ghost"',
    ),
    (
        ("create", "queue", "a", "--priority-factor", "0.5"),
        1,
        "",
        (
            "Error: invalid queue data: failed to map priority factor. "
            "priority factor cannot be lower than 1.0. Value: 0.500000"
        ),
    ),
    (("create", "queue", "a", "-l", "x"), 1, "", "Error: error converting queue labels to map: invalid label: x"),
    (
        ("create", "queue", "a", "--priority-factor", "3", "--cordon", "-l", "team=vision,of=x"),
        0,
        "Created queue a\n",
        "",
    ),
    (
        ("get", "queues", "a", "-l", "team"),
        1,
        "",
        "either with a set of queue names or a set of queue labels, but not both",
    ),
    (
        ("get", "queues", "-l", "team=vision", "--only-cordoned"),
        0,
        "kind: Queue\ncordoned: true\nlabels:\n  of: x\n  team: vision\nname: a\n",
        "",
    ),
    (("uncordon", "queues", "-l", "of=x", "--dry-run"), 0, "Uncordoning the following queues: (DRY RUN)\na\n", ""),
    (("uncordon", "queue", "a"), 0, "Uncordoning the following queues:\na uncordoned\n", ""),
    (
        ("cordon", "queues", "-l", "team=vision"),
        0,
        "Cordoning the following queues:\na cordoned\nvision cordoned\n",
        "",
    ),
    (("cordon", "queues"), 1, "", "either queue names or match-labels must be set to determine queues to cordon"),
    (("update", "queue", "a"), 0, "Updated queue a\n", ""),
    (
        ("get", "queue", "a"),
        0,
        "apiVersion: armadaproject.io/v1beta1\nkind: Queue\nname: a\n",
        "",
    ),
    (("delete", "queue", "a"), 0, "Deleted queue a (or it did not exist)\n", ""),
    (
        ("get", "retry-policy", "ghost"),
        1,
        "",
        f'Error: error getting retry policy ghost: get retry policy request failed: {MISSING} retry policy "ghost"',
    ),
)
"""Commands, their exit codes, and what they print on either stream."""


def test_policies_and_queues_are_made_shown_fed_back_and_deleted_in_the_words_of_armadactl(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("document", DOCUMENT), ("flat", FLAT), ("queue", QUEUE)):
        write(tmp_path, f"{name}.yaml", text)
    for words, code, out, err in TOLD:
        said = say(*words)
        assert (said[0], out in said[1], err in said[2]) == (code, True, True), (words, said)
    for policy in ("ml-training", "infra"):
        _, shown, _ = say("get", "retry-policy", policy)
        again = write(tmp_path, "again.yaml", shown)
        assert say("create", "-f", again) == (0, f"Created retry policy {policy}\n", "")
        assert say("get", "retry-policy", policy)[1] == shown
    _, shown, _ = say("get", "queue", "vision")
    assert say("create", "-f", write(tmp_path, "again.yaml", shown)) == (0, "Created queue vision\n", "")
    assert say("get", "queue", "vision")[1] == shown
    every = write(tmp_path, "every.yaml", say("get", "retry-policies")[1])
    assert say("create", "-f", every)[1].splitlines() == [
        "Created retry policy infra",
        "Created retry policy ml-training",
    ]
    assert say("delete", "retry-policy", "infra")[1] == "Deleted retry policy infra (or it did not exist)\n"
    assert "- ml-training\n" in say("get", "queue", "vision")[1], "it is detached from the queue, which keeps the other"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("apiVersion: v2\nkind: Queue\n", "invalid version: v2. Valid values: [armadaproject.io/v1beta1"),
        (
            "apiVersion: armadaproject.io/v1beta1\nkind: Executor\n",
            "invalid kind: Executor. Valid values: [Queue RetryPolicy]",
        ),
        (
            "apiVersion: armadaproject.io/v1beta1\nkind: Queue\nname: a\npriorityFactor: much\n",
            "priorityFactor must be a number, not 'much'",
        ),
        (
            "apiVersion: armadaproject.io/v1beta1\nkind: Queue\nname: a\n",
            "priority factor cannot be lower than 1.0. Value: 0.000000",
        ),
        (
            (
                "apiVersion: armadaproject.io/v1beta1\nkind: RetryPolicy\nname: p\n"
                "defaultAction: Fail\nrules: [{action: Sing}]\n"
            ),
            'invalid retry policy: retry policy "p" rule 0: action must be Fail or Retry',
        ),
        (
            "apiVersion: armadaproject.io/v1beta1\nkind: RetryPolicy\nname: p\nretryLimt: 3\ndefaultAction: Fail\n",
            "retryLimt",
        ),
        ("", "EOF"),
        ("a: [", "Failed to parse file"),
    ],
)
def test_a_file_that_is_wrong_is_refused_before_anything_of_it_is_stored(tmp_path: Path, text: str, told: str) -> None:
    err = io.StringIO()
    file = write(tmp_path, "file.yaml", text)
    for words in (("create", "-f", file), ("create", "-f", file, "--dry-run")):
        assert run(words, Cli(stderr=err), "armadactl") == 1
        assert told in err.getvalue()


def test_what_no_failure_has_is_warned_of_as_a_file_is_read(tmp_path: Path) -> None:
    rules = "[{action: Retry, onExitCodes: {operator: In, values: [-1, 137]}, containerName: log-shipper}]"
    text = "apiVersion: armadaproject.io/v1beta1\nkind: RetryPolicy\nname: p\ndefaultAction: Fail\nrules: " + rules
    file = write(tmp_path, "file.yaml", text)
    err = io.StringIO()
    assert run(("create", "-f", file, "--dry-run"), Cli(stderr=err), "armadactl") == 0
    assert re.search(r"rules\[0\].onExitCodes.values \(line \d\): -1 never matches", err.getvalue())
    assert re.search(r"rules\[0\].containerName \(line \d\): only pods have a container 'log-shipper'", err.getvalue())


def test_jobs_of_a_file_are_submitted_and_watched_to_their_end(say: Callable[..., Said], tmp_path: Path) -> None:
    say("create", "retry-policy", "-f", write(tmp_path, "flat.yaml", FLAT))
    say("create", "queue", "ml")
    ends = write(tmp_path, "ends.yaml", JOBS.format(program="exit 3"))
    assert say("submit", ends, "--dry-run") == (0, "", "")
    code, out, _ = say("submit", ends)
    match = re.fullmatch(r"Submitted job with id (\w{26}) to job set set 1\n", out)
    assert match is not None
    code, out, err = say("watch", "ml", "set 1", "--exit-if-inactive")
    assert (code, err, out.splitlines()[0]) == (0, "", "Watching job set set 1")
    counts = "Queued:   0, Leased:   0, Pending:   0, Running:   0, Succeeded:   0, Failed:   1, Cancelled:   0"
    assert re.search(
        rf"\w+ [ \d]\d \d\d:\d\d:\d\d \| {counts} \| JobFailedEvent, job id: {match[1]} pod: 0\nJob failed: ", out
    )
    assert '*api.JobFailedEvent {"jobId"' in say("watch", "ml", "set 1", "--exit-if-inactive", "--raw")[1]
    assert say("watch", "ml", "ghost")[2] == "error: [GetJobSetEvents] Jobset ghost for queue ml does not exist\n"


@pytest.mark.slow
def test_what_runs_on_a_node_is_preempted_and_cancelled(
    say: Callable[..., Said], tmp_path: Path, server: DoorServer
) -> None:
    say("create", "retry-policy", "-f", write(tmp_path, "flat.yaml", FLAT))
    say("create", "queue", "ml")
    say("create", "queue", "other")
    file = write(tmp_path, "sleeps.yaml", JOBS.format(program="sleep 1000"))

    def audited() -> set[str]:
        return {one.action for one in client.audit()}

    with server.client() as client:
        [(node, executor)] = {(one.name, one.executor) for one in client.nodes()}
        job = say("submit", file)[1].split()[4]
        wait_until(lambda: client.job(job).state == "Running", "a program")
        on, meant = (node, "-e", executor), f"node: {node}, executor: {executor}, queues"
        told = f"Requesting preemption of jobs matching {meant}"
        assert say("preempt", "node", *on, "-q", "other", "-a") == (0, f"{told}: other, priority-classes: \n", "")
        assert say("preempt", "node", *on, "-p", "a,b") == (0, f"{told}: all, priority-classes: a,b\n", "")
        assert "preempt" not in audited(), "nobody was meant yet"
        assert say("preempt", "node", *on, "-a") == (0, f"{told}: all, priority-classes: \n", "")
        assert "preempt" in audited()
        again = say("submit", file)[1].split()[4]
        wait_until(lambda: client.job(again).state == "Running", "another program")
        told = f"Requesting cancellation of jobs matching node: {node},  executor: {executor}"
        assert say("cancel", "node", *on, "-q", "ml", "-a") == (0, f"{told}, queues: ml, priority-classes: all\n", "")
        wait_until(lambda: client.job(again).state == "Cancelled", "its end")
    refused = f"error preempting jobs on node {node}: rpc error: code = InvalidArgument desc = must provide"
    code, _, err = say("preempt", "node", node, "-e", "", "-a")
    assert (code, refused in err) == (1, True), err


def test_jobs_are_reprioritized_preempted_and_cancelled_in_the_words_of_armadactl(
    say: Callable[..., Said], tmp_path: Path, server: DoorServer
) -> None:
    say("create", "retry-policy", "-f", write(tmp_path, "flat.yaml", FLAT))
    say("create", "queue", "ml")
    _, out, _ = say("submit", write(tmp_path, "sleeps.yaml", JOBS.format(program="sleep 1000")))
    job = out.split()[4]
    for words, code, out, err in (
        (("reprioritize", "job", "ml", "set 1", job, "7"), 0, f"Reprioritized jobs with ID:\n{job}\n", ""),
        (
            ("reprioritize", "job-set", "ml", "set 1", "8"),
            0,
            "Reprioritized jobs with ID:\nall jobs in job set set 1\n",
            "",
        ),
        (
            ("reprioritize", "job-set", "ml", "set 1", "x"),
            1,
            "",
            'error converting x to float64: strconv.ParseFloat: parsing "x": invalid syntax',
        ),
        (("preempt", "job", "ml", "set 1", job, "a demo"), 0, f"Requested preemption for job {job}\n", ""),
        (
            ("preempt", "queues", "ml", "-a", "--dry-run"),
            0,
            "Requesting preemption of jobs matching queue: ml, priorityClasses: all, pools: all\n",
            "",
        ),
        (("preempt", "queues", "-a"), 1, "", "queue selection must be narrowed down either by names or by labels"),
        (("cancel", "job", "ml", "set 1", job), 0, f"Requested cancellation for jobs {job}\n", ""),
        (("cancel", "job-set", "ml", "set 1"), 0, "Requested cancellation for job set set 1\n", ""),
        (
            ("cancel", "job-set", "ghost", "set 1"),
            1,
            "",
            'rpc error: code = NotFound desc = could not find queue "ghost"',
        ),
        (
            ("cancel", "queue", "ml", "-s", "queued,running", "-p", "armada-default"),
            0,
            "priorityClasses: armada-default, jobStates: queued,running, pools: all\n",
            "",
        ),
        (
            ("cancel", "queue", "ml", "-a", "-s", "asleep"),
            1,
            "",
            "error determining active job state corresponding to asleep",
        ),
    ):
        said = say(*words)
        assert (said[0], out in said[1], err in said[2]) == (code, True, True), (words, said)
    with server.client() as client:
        assert client.job(job).priority == -8


def test_what_is_wrong_with_jobs_is_said_with_all_its_places_by_a_dry_run_and_by_the_server(
    say: Callable[..., Said], tmp_path: Path
) -> None:
    say("create", "queue", "ml")
    text = textwrap.dedent(JOBS.format(program="true"))
    wrong = text.replace("namespace: default", "unheardOf: 1").replace("limits: {memory: 64Mi", "limits: {memory: 65Mi")
    file = write(tmp_path, "jobs.yaml", wrong)
    for words in (("submit", file, "--dry-run"), ("submit", file)):
        code, out, err = say(*words)
        assert (code, out) == (1, "")
        assert "namespace is a required field" in err
        assert "jobs[0].unheardOf is not known here, and has no effect" in err
        assert re.search(r"\n  jobs\[0\].podSpec.containers\[0\].resources\S*: ", err)
    unlike = write(tmp_path, "unlike.yaml", text.replace("restartPolicy: Never", "restartPolicy: 5"))
    assert "jobs[0].podSpec.restartPolicy must be a text, not 5" in say("submit", unlike)[2]
    assert say("submit", write(tmp_path, "none.yaml", "queue: ml\njobs: []\n"))[2] == (
        "Error: Warning: You have provided no jobs to submit.\n"
    )
    assert say("submit", str(tmp_path / "ghost.yaml"))[2].startswith("Error: Failed opening file ")


def test_two_hundred_bad_jobs_are_refused_in_what_headers_have_room_for(
    say: Callable[..., Said], tmp_path: Path
) -> None:
    say("create", "queue", "many")
    file = write(tmp_path, "many.yaml", "queue: many\njobSetId: s\njobs:\n" + "  - {podSpec: {containers: []}}\n" * 200)
    code, _, err = say("submit", file)
    assert (code, "rpc error: code = InvalidArgument" in err) == (1, True), err
    assert " more\n" in err
