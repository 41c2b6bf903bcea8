"""Work that waits for other work at the command line, with a real server and real programs; kill -9 in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import Server, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PIPELINE = """
name: report
command: [sh, -c, 'echo reported >> {out}']
dependsOn: [{{name: train, condition: ended}}]
---
name: train
command: [sh, -c, 'echo trained-$HOLDFAST_ARRAY_INDEX >> {out}']
array: {{indices: 0-1, maxRunning: 1}}
dependsOn: [prep]
---
name: check
command: [sh, -c, 'echo checked-$HOLDFAST_ARRAY_INDEX >> {out}; test $HOLDFAST_ARRAY_INDEX != 1']
array: {{indices: 0-1}}
dependsOn: ['train:index']
---
name: prep
command: [sh, -c, 'echo prepared >> {out}']
---
name: alarm
command: [sh, -c, 'echo alarm >> {out}']
dependsOn: ['check:failed']
---
name: celebrate
command: [sh, -c, 'echo hurray >> {out}']
dependsOn: [check, report]
"""
BAD = """
name: a
command: [x]
dependsOn: [c]
---
name: b
command: [x]
dependsOn: ['a:okay', 'nope/x', a]
---
name: c
command: [x]
dependsOn: [{name: b, condition: whenever}]
---
name: d
command: [x]
queue: nowhere
dependsOn: [d, nothing, 'c:index']
"""
KUBERNETES = """
apiVersion: batch/v1
kind: Job
metadata: {{name: pods, annotations: {{holdfast.dev/depends-on: "first"}}}}
spec:
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: main, command: [sh, -c, 'echo pod >> {out}']}}]
---
name: first
command: [sh, -c, 'until test -e {gate}; do sleep 0.02; done; echo first >> {out}']
"""
CHAIN = """
name: report
command: [sh, -c, 'echo reported >> {out}']
dependsOn: [evaluate]
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: evaluate, annotations: {{holdfast.dev/depends-on: "train"}}}}
spec:
  replicatedJobs:
    - name: w
      template:
        spec:
          template:
            spec:
              restartPolicy: Never
              containers: [{{name: main, command: [sh, -c, 'echo evaluated >> {out}']}}]
---
apiVersion: holdfast.dev/v1
kind: JobSet
metadata: {{name: train}}
spec:
  dependsOn: prep
  jobs: [{{name: w, replicas: 2, command: [sh, -c, 'echo trained >> {out}']}}]
---
name: prep
command: [sh, -c, 'until test -e {gate}; do sleep 0.02; done; echo prepared >> {out}']
"""
PROBLEMS = (
    "dependsOn[0] (line 4): waits for itself through others: a -> c -> b -> a",
    "dependsOn[0] (line 8): 'okay' is not a condition; allowed: ok, failed, ended, started, index; hint: did you mean",
    "dependsOn[1] (line 8): 'nope' is not a kind of work; allowed: job, array, jobset",
    "dependsOn[0].condition (line 12): 'whenever' is not one of its values; allowed: ok, failed, ended, started",
    "dependsOn[2] (line 17): only the tasks of an array can each wait for a task",
    "dependsOn[0] (line 17): job 'd' cannot wait for itself",
    "dependsOn[1] (line 17): no job, array or job set has the id or name 'nothing'; allowed: a, b, c; hint: list",
    "queue (line 16): queue 'nowhere' does not exist",
)


class Shell(Server):
    """A person's shell with a data directory of its own, and its server."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.out = folder / "out"

    def written(self) -> list[str]:
        """Read what programs wrote down."""
        return self.out.read_text().split() if self.out.exists() else []


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.clean_up()


def test_a_file_whose_jobs_and_arrays_name_each_other_runs_in_their_order(shell: Shell) -> None:
    text = PIPELINE.format(out=shell.out)
    submitted = shell.run("submit", "-f", "-", "--wait", text=text)
    assert (submitted.returncode, len(submitted.stdout.splitlines())) == (1, 6), submitted.stderr
    written = shell.written()
    expected = ["alarm", "checked-0", "checked-1", "prepared", "reported", "trained-0", "trained-1"]
    assert sorted(written) == expected
    for first, then in (("prepared", "trained-0"), ("trained-1", "checked-1"), ("trained-1", "reported")):
        assert written.index(first) < written.index(then)
    states = {job["name"]: job["state"] for job in shell.json("get", "jobs")["items"]}
    assert states == {"prep": "Succeeded", "report": "Succeeded", "alarm": "Succeeded", "celebrate": "Cancelled"}
    why = shell.run("why", "celebrate").stdout
    assert why.startswith("Job celebrate was cancelled: array check did not succeed: it failed: 1 of 2 tasks")
    header, *lines = shell.run("get", "jobs", "--tree").stdout.splitlines()
    drawn = [line[: header.index("STATE")].rstrip() for line in lines]
    assert [line.lstrip("│├└─ ") for line in drawn] == ["prep", "train", "check", "alarm", "report", "celebrate"]
    depths = [len(line) - len(line.lstrip("│├└─ ")) for line in drawn]
    assert (depths[0] < depths[1] < depths[2] < depths[3], depths[4] == depths[2]) == (True, True)


def test_a_file_with_mistakes_is_refused_whole_with_all_of_them(shell: Shell) -> None:
    refused = shell.run("submit", "-f", "-", text=BAD)
    assert (refused.returncode, "nothing was submitted" in refused.stderr) == (2, True), refused.stderr
    for problem in PROBLEMS:
        assert problem in refused.stderr, refused.stderr


def test_kill_nine_between_the_end_of_one_and_the_start_of_the_next_loses_nothing(shell: Shell) -> None:
    gate = shell.folder / "gate"
    script = f"until test -e {gate}; do sleep 0.02; done; echo first >> {shell.out}"
    with shell.start() as client:
        first = client.submit({"name": "first", "command": ["sh", "-c", script]})
        then = {"name": "then", "command": ["sh", "-c", f"echo then >> {shell.out}"], "dependsOn": [first.id]}
        last = {"name": "last", "command": ["true"], "dependsOn": ["then:ended"]}
        ids = [str(item.id) for item in client.submit_bulk([last, then]).items]
        until(client, first.id, lambda job: job.state == "Running")
        assert client.why(ids[1]).summary == [
            f"It waits for job first to succeed. Job first is running, attempt 1. More: holdfast why {first.id}"
        ]
    shell.end()
    gate.touch()
    wait_until(lambda: "first" in shell.written(), "the first has ended")
    with shell.start() as client:
        until(client, ids[0], lambda job: job.state == "Succeeded")
    assert shell.written() == ["first", "then"]


def test_submit_has_all_wait_for_something(shell: Shell) -> None:
    path = shell.folder / "two.yaml"
    path.write_text("name: one\ncommand: ['true']\n---\nname: two\ncommand: ['true']\ndependsOn: one\n")
    with shell.start() as client:
        long = client.submit({"name": "long", "command": ["sleep", "300"]})
        assert shell.run("submit", "-f", str(path), "--after", "long:failed").returncode == 0
        [waits] = client.job("one").depends_on
        assert (waits.id, waits.condition, waits.waits) == (long.id, "failed", True)
        assert [one.name for one in client.job("two").depends_on] == ["one", "long"]
        client.cancel(long.id, reason="enough")
        two = until(client, "two", lambda job: job.state == "Cancelled")
        assert two.reason.startswith(
            "job one did not succeed: it was cancelled: job long did not fail: it was cancelled"
        )
    refused = shell.run("run", "--after", "lone", "--", "true")
    assert (refused.returncode, "spec.dependsOn[0]: no job, array or job set has" in refused.stderr) == (2, True)


def test_a_kubernetes_job_waits_over_kill_nine_of_the_server_for_a_job_of_its_file(shell: Shell) -> None:
    gate = shell.folder / "gate"
    text = KUBERNETES.format(out=shell.out, gate=gate)
    with shell.start() as client:
        client.submit({"name": "before", "command": ["true"]})
        submitted = shell.run("submit", "-f", "-", "--after", "before", text=text)
        assert submitted.returncode == 0, submitted.stderr
        until(client, "first", lambda job: job.state == "Running")
        assert [one.name for one in client.job("pods").depends_on] == ["first", "before"]
        until(client, "pods", lambda job: job.reason == "waits for job first to succeed")
        assert "It waits for job first to succeed." in shell.run("why", "pods").stdout
    shell.end()
    gate.touch()
    wait_until(lambda: "first" in shell.written(), "the first has ended")
    with shell.start() as client:
        until(client, "pods", lambda job: job.state == "Succeeded")
    assert shell.written() == ["first", "pod", "pod"]


@pytest.mark.slow
def test_job_sets_wait_for_jobs_and_sets_of_their_file_over_kill_nine_of_the_server(shell: Shell) -> None:
    gate = shell.folder / "gate"
    text = CHAIN.format(out=shell.out, gate=gate)
    with shell.start() as client:
        refused = shell.run("submit", "-f", "-", "--after", "nobody", text=text)
        assert (refused.returncode, refused.stderr.count("no job, array or job set has the id")) == (2, 4)
        assert list(client.job_sets()) == []
        submitted = shell.run("submit", "-f", "-", text=text)
        assert submitted.returncode == 0, submitted.stderr
        names = [line.split()[1] for line in submitted.stdout.splitlines()]
        assert names == ["evaluate", "train", "report", "prep"]
        until(client, "prep", lambda job: job.state == "Running")
        assert client.job_set("train").message == "waits for job prep to succeed"
        assert shell.run("why", "jobset/evaluate").stdout.startswith(
            "Job set evaluate waits for job set train to succeed."
        )
        drawn = [line.lstrip("│├└─ ").split()[0] for line in shell.run("get", "jobs", "--tree").stdout.splitlines()]
        assert drawn[1:3] == ["prep", "jobset/train"]
        assert drawn.index("jobset/train") < drawn.index("jobset/evaluate") < drawn.index("report")
    shell.end()
    gate.touch()
    wait_until(lambda: "prepared" in shell.written(), "the first has ended")
    with shell.start() as client:
        until(client, "report", lambda job: job.state == "Succeeded")
        applied = shell.run("apply", "-f", "-", text=text)
        assert [line.split()[-1] for line in applied.stdout.splitlines()] == [
            "submitted",
            "unchanged",
            "unchanged",
            "submitted",
        ]
        again = shell.run("submit", "-f", "-", text=text).stderr
        assert "standard input: document (line 6): job set 'evaluate' exists already" in again
    assert shell.written()[:5] == ["prepared", "trained", "trained", "evaluated", "reported"]
