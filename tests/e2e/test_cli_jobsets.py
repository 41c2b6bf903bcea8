"""Job sets from the command line as people use them: real processes, exit codes, with a server and without."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

KEP = Path(__file__).parents[1] / "data" / "kep-262"
PODS = """\
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: busybox
              command: [sh, -c, {program!r}]
              resources: {{requests: {{cpu: 100m}}}}
"""
SET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {name}
spec:
  failurePolicy:
    maxRestarts: {restarts}
  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - {{name: main, image: busybox, command: [sh, -c, 'echo "pod $JOB_COMPLETION_INDEX"']}}
"""
STAYS = "exec sleep 300"


class Shell(Server):
    """A person's shell with a data directory of its own, and its server."""

    def write(self, name: str, program: str, *, restarts: int = 0) -> str:
        """Write the manifest of a job set of two jobs with two pods each; returns its file."""
        path = self.folder / f"{name}.yaml"
        path.write_text(SET.format(name=name, restarts=restarts) + PODS.format(program=program))
        return str(path)

    def has_programs(self, count: int) -> bool:
        """Whether so many programs are running."""
        return len(self.programs()) == count


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell on whose data directory a server runs."""
    shell = Shell(tmp_path_factory.mktemp("sets"))
    shell.start().close()
    yield shell
    shell.clean_up()


def test_a_job_set_is_applied_waited_for_and_looked_at(shell: Shell) -> None:
    file = shell.write("good", 'echo "pod $JOB_COMPLETION_INDEX of job $JOB_INDEX"')
    applied = shell.run("apply", "-f", file)
    assert (applied.returncode, applied.stdout) == (0, "jobset good created\n"), applied.stderr
    assert "image busybox is ignored" in applied.stderr
    assert shell.run("wait", "jobset", "good", "--timeout", "60s").returncode == 0
    assert shell.run("get", "jobsets").stdout.splitlines()[1].split()[:5] == ["good", "Completed", "0", "True", "false"]
    jobs = shell.json("get", "jobs", "--jobset", "good")["items"]
    assert [(job["name"], job["state"]) for job in jobs] == [
        ("good-workers-0", "Succeeded"),
        ("good-workers-1", "Succeeded"),
    ]
    assert shell.run("logs", "good-workers-1", "--rank", "1").stdout == "pod 1 of job 1\n"
    assert shell.run("logs", "good-workers-0").stdout == "[0] pod 0 of job 0\n[1] pod 1 of job 0\n"
    described = shell.run("describe", "jobset", "good").stdout
    assert "Completed" in described
    assert "2 succeeded" in described
    assert shell.run("apply", "-f", file).stdout == "jobset good unchanged\n"
    assert shell.run("create", "-f", file).returncode == 4


def test_a_failed_set_ends_waiting_with_1_and_tells_why(shell: Shell) -> None:
    file = shell.write("bad", 'test "$JOB_INDEX$JOB_COMPLETION_INDEX" != 00', restarts=1)
    submitted = shell.run("submit", "-f", file, "--wait")
    assert (submitted.returncode, submitted.stderr.splitlines()[-1]) == (1, "bad: Failed")
    view = shell.json("get", "jobset", "bad")
    assert (view["terminal"], view["restarts"], view["restarts_counted"]) == ("Failed", 1, 1)
    why = shell.run("why", "jobset", "bad").stdout
    assert [line for line in why.splitlines() if line.startswith("Attempt 2 failed") and "exit code 1." in line]
    assert "1 of 1 restarts are used (maxRestarts)" in why
    described = shell.run("describe", "jobset", "bad").stdout
    assert "1 counted of 1 allowed" in described
    assert "ReachedMaxRestarts" in described
    first = shell.run("why", "bad-workers-0", "--attempt", "1").stdout
    assert "Attempt 1 failed on node" in first
    assert "This is restart 1 of 1 (maxRestarts)." in first
    assert "Attempt 2" not in first


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        ({"command": ["sh", "-c", "exit 42"]}, "exit code 42."),
        ({"command": ["no-such-program"]}, "LaunchFailed: cannot start 'no-such-program': No such file or directory."),
        (
            {"command": ["python3", "-c", "x = bytearray(200 << 20); input()"], "resources": {"memory": "30Mi"}},
            "OOMKilled: exceeded its memory limit of 30Mi.",
        ),
    ],
    ids=["exit code", "missing program", "out of memory"],
)
def test_why_says_what_the_program_of_a_failed_job_of_a_set_did(shell: Shell, asks: dict[str, Any], told: str) -> None:
    document = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "one"}}
    asks = {**asks, "resources": {"cpu": 0.1, **asks.get("resources", {})}}
    file = shell.folder / "one.json"
    file.write_text(json.dumps({**document, "spec": {"jobs": [{"name": "a", **asks}]}}))
    shell.run("delete", "jobset", "one", "--wait")
    assert shell.run("submit", "-f", str(file), "--wait").returncode == 1
    for words in (("jobset", "one"), ("one-a-0",), ("one-a-0", "--attempt", "1")):
        said = shell.run("why", *words).stdout.splitlines()
        assert sum(line.startswith("Attempt 1 failed") and line.endswith(told) for line in said) == 1, said


def test_a_set_is_suspended_resumed_restarted_and_deleted(shell: Shell) -> None:
    assert shell.run("create", "-f", shell.write("long", STAYS)).returncode == 0
    wait_until(lambda: shell.has_programs(4), "four pods that run")
    assert shell.run("suspend", "jobset", "long").stdout == "jobset long suspend requested\n"
    assert shell.run("wait", "jobset", "long", "--for", "Suspended", "--timeout", "60s").returncode == 0
    wait_until(lambda: shell.has_programs(0), "no pods of a suspended set")
    assert shell.run("resume", "jobset", "long").returncode == 0
    wait_until(lambda: shell.has_programs(4), "four pods that run again")
    before = {process.pid for process in shell.programs()}
    assert shell.run("restart", "job", "long-workers-1").returncode == 0
    wait_until(lambda: len({one.pid for one in shell.programs()} - before) == 2, "two new pods, of one job")
    assert shell.run("restart", "replicatedjob", "long", "workers").returncode == 0
    assert shell.run("restart", "jobset", "nowhere").returncode == 3
    deleted = shell.run("delete", "jobset", "long", "--timeout", "60s")
    assert (deleted.returncode, deleted.stdout) == (0, "jobset long deleted\n"), deleted.stderr
    assert shell.run("get", "jobset", "long").returncode == 3
    assert shell.has_programs(0)


def test_a_job_of_kubernetes_runs_its_pods(shell: Shell) -> None:
    (shell.folder / "job.yaml").write_text(JOB.format(name="kube"))
    submitted = shell.run("submit", "-f", str(shell.folder / "job.yaml"), "--wait")
    assert submitted.returncode == 0, submitted.stderr
    assert "image busybox is ignored" in submitted.stderr
    assert shell.run("logs", "kube").stdout == "[0] pod 0\n[1] pod 1\n"
    described = shell.run("describe", "kube").stdout
    assert "Completed indexes:" in described
    assert "Complete " in described
    assert "EndPods" in described


def test_a_job_of_kubernetes_is_suspended_and_resumed(shell: Shell) -> None:
    manifest = JOB.format(name="paused").replace("echo", f"{STAYS}; echo")
    (shell.folder / "paused.yaml").write_text(manifest)
    assert shell.run("submit", "-f", str(shell.folder / "paused.yaml")).returncode == 0
    wait_until(lambda: shell.has_programs(2), "two pods that run")
    assert shell.run("suspend", "job", "paused").stdout == "job paused suspend requested\n"
    wait_until(lambda: shell.json("get", "job", "paused")["state"] == "Held", "a job that is held")
    assert shell.has_programs(0)
    assert shell.run("resume", "job", "paused").returncode == 0
    wait_until(lambda: shell.has_programs(2), "two pods that run again")
    assert shell.run("cancel", "paused").returncode == 0
    wait_until(lambda: shell.has_programs(0), "no pods of a cancelled job")


def test_a_job_of_kubernetes_is_forgotten_when_its_time_to_live_is_over(shell: Shell) -> None:
    manifest = JOB.format(name="brief").replace("spec:\n", "spec:\n  ttlSecondsAfterFinished: 0\n", 1)
    (shell.folder / "brief.yaml").write_text(manifest)
    (shell.folder / "lasting.yaml").write_text(JOB.format(name="lasting"))
    assert shell.run("submit", "-f", str(shell.folder / "lasting.yaml"), "--wait").returncode == 0
    assert shell.run("submit", "-f", str(shell.folder / "brief.yaml")).returncode == 0
    wait_until(lambda: shell.run("get", "job", "brief").returncode == 3, "a job that is gone")
    assert shell.run("get", "job", "lasting").returncode == 0, "what has no time to live stays"
    assert shell.run("logs", "brief").returncode == 3


def test_the_documents_own_manifest_is_accepted_leniently(shell: Shell) -> None:
    file = str(KEP / "fail-jobset.yaml")
    strict = shell.run("apply", "-f", file)
    assert (strict.returncode, "line 36" in strict.stderr, "--lenient" in strict.stderr) == (2, True, True)
    lenient = shell.run("apply", "-f", file, "--lenient")
    assert (lenient.returncode, lenient.stdout) == (0, "jobset fail-jobset-example created\n")
    assert "warning: " in lenient.stderr
    assert shell.run("delete", "jobset", "fail-jobset-example").returncode == 0


def test_without_a_server_a_set_runs_where_the_caller_is(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert shell.run("submit", "-f", shell.write("alone", "true"), "--wait", "--timeout", "60s").returncode == 0
    assert shell.run("delete", "js", "alone").stdout == "jobset alone deleted\n"


def test_a_job_of_kubernetes_that_is_applied_again_is_left_alone_until_it_is_another(shell: Shell) -> None:
    path = shell.folder / "again.yaml"
    path.write_text(JOB.format(name="again"))
    first = shell.run("apply", "-f", str(path))
    assert (first.returncode, first.stdout.split()[2:]) == (0, ["again", "submitted"]), first.stderr
    job_id = first.stdout.split()[1]
    assert shell.run("apply", "-f", str(path)).stdout == f"job {job_id} again unchanged\n"
    assert shell.run("wait", "job", "again", "--timeout", "60s").returncode == 0
    assert shell.run("apply", "-f", str(path)).stdout == f"job {job_id} again unchanged\n"
    assert shell.run("submit", "-f", str(path)).stdout.split()[0] != job_id
    path.write_text(JOB.format(name="again").replace("completions: 2", "completions: 1"))
    assert shell.run("apply", "-f", str(path)).stdout.endswith(" again submitted\n")


@pytest.mark.slow
def test_one_set_is_listed_read_and_deleted_by_its_file(shell: Shell) -> None:
    met = shell.folder / "met"
    met.mkdir()
    arrives = f"touch {met}/$JOB_INDEX$JOB_COMPLETION_INDEX"
    meets = f"{arrives}; until test -e {met}/11 -a -e {met}/10; do sleep 0.02; done"
    path = Path(shell.write("whole", f'echo "$JOB_COMPLETION_INDEX"; {meets}; test "$JOB_INDEX" = 0'))
    path.write_text(path.read_text().replace("name: whole", "name: whole\n  labels: {team: blue}"))
    assert shell.run("submit", "-f", str(path), "--wait").returncode == 1
    listed = [shell.json("get", "js", *where)["items"] for where in (["-l", "team=blue"], ["-l", "team=red"])]
    assert [[one["name"] for one in some] for some in listed] == [["whole"], []]
    assert "whole" in [one["name"] for one in shell.json("get", "js", "--state", "failed,Running")["items"]]
    assert "whole" not in [one["name"] for one in shell.json("get", "js", "--state", "Completed")["items"]]
    events = shell.json("events", "--jobset", "whole")["items"]
    subjects = {event["subject"].partition("/")[0] for event in events}
    assert subjects == {"jobs", "jobsets"}
    assert (events[0]["data"]["name"], {"whole"}) == (
        "whole",
        {event["data"]["name"] for event in events if event["subject"] == "jobsets/whole"},
    )
    for named in (["jobset/whole"], ["js", "whole"], ["--jobset", "whole"]):
        assert shell.json("events", *named)["items"] == events
        lines = sorted(shell.run("logs", *named).stdout.splitlines())
        assert lines == [f"[whole-workers-{job}/{pod}] {pod}" for job in (0, 1) for pod in (0, 1)]
    followed = shell.run("events", "-f", "jobset/whole", "-o", "name").stdout.split()
    assert followed == [event["id"] for event in events][: len(followed)]
    assert len(followed) > 1
    written = shell.run("get", "jobset", "whole", "-o", "yaml").stdout
    assert "status:\n" in written
    path.write_text(written)
    assert shell.run("apply", "-f", str(path)).stdout == "jobset whole unchanged\n"
    path.write_text(shell.run("get", "queues", "-o", "yaml").stdout)
    assert shell.run("apply", "-f", str(path)).stdout == "queue default applied\n"
    path.write_text(written)
    assert shell.run("delete", "-f", str(path)).stdout == "jobset whole deleted\n"
    assert shell.run("delete", "-f", str(path)).returncode == 3


def test_a_set_that_would_have_a_job_of_another_sets_name_is_refused_by_name(shell: Shell) -> None:
    there, other = shell.write("a-b", "true"), shell.write("a", "true")
    path = Path(other)
    path.write_text(path.read_text().replace("name: workers", "name: b-workers"))
    assert shell.run("create", "-f", there).returncode == 0
    for words in (["create", "-f", other, "--dry-run"], ["create", "-f", other], ["apply", "-f", other]):
        refused = shell.run(*words)
        assert refused.returncode == 4, refused.stderr
        assert "job set 'a' would have a job 'a-b-workers-0', and so has job set 'a-b'" in refused.stderr
    assert shell.run("delete", "jobset", "a-b").returncode == 0
    assert shell.run("apply", "-f", other).stdout == "jobset a created\n"


def test_a_job_without_parallelism_says_why_it_starts_nothing(shell: Shell) -> None:
    path = shell.folder / "none.yaml"
    path.write_text(JOB.format(name="none").replace("parallelism: 2", "parallelism: 0"))
    assert shell.run("submit", "-f", str(path)).returncode == 0
    why = "its parallelism is 0, so it starts no pods"
    wait_until(lambda: shell.json("get", "job", "none")["reason"] == why, "a reason")
    assert shell.run("why", "none").stdout.startswith(f"Job none is queued: {why}\n")
    assert why in shell.run("describe", "job", "none").stdout
    assert why in shell.run("get", "job", "none", "-o", "wide").stdout
    assert shell.run("cancel", "none").returncode == 0


def test_names_are_made_up_for_what_is_new_and_only_for_that(shell: Shell) -> None:
    (shell.folder / "set.yaml").write_text(
        Path(shell.write("made", "true")).read_text().replace("  name: made", "  generateName: made-")
    )
    (shell.folder / "job.yaml").write_text(JOB.format(name="x").replace("{name: x}", "{generateName: made-}"))
    for kind, told in (("set", r"jobset (made-[0-9a-z]{5}) created"), ("job", r"job \w+ (made-[0-9a-z]{5}) submitted")):
        path, names = str(shell.folder / f"{kind}.yaml"), set()
        assert shell.run("create", "-f", path, "--dry-run").returncode == 0
        for _ in range(2):
            created = shell.run("create", "-f", path)
            found = re.fullmatch(told, created.stdout.strip())
            assert found is not None, (created.stdout, created.stderr)
            names.add(found[1])
        submitted = shell.run("submit", "-f", path, "--wait")
        assert submitted.returncode == 0, submitted.stderr
        assert len({submitted.stdout.split()[1], *names}) == 3
        for verb in ("apply", "delete"):
            refused = shell.run(verb, "-f", path)
            assert refused.returncode == 2
            assert "metadata.generateName" in refused.stderr
            assert "hint: write name instead, or: holdfast create -f FILE" in refused.stderr
        assert shell.run("wait", "jobset" if kind == "set" else "job", *names, "--timeout", "60s").returncode == 0


def test_a_job_of_kubernetes_is_cancelled_by_deleting_its_file(shell: Shell) -> None:
    path = shell.folder / "stays.yaml"
    path.write_text(JOB.format(name="stays").replace('echo "pod $JOB_COMPLETION_INDEX"', "exec sleep 300"))
    shell.run("apply", "-f", str(path))
    assert shell.run("delete", "-f", str(path)).stdout == "job stays cancelled\n"
    assert shell.run("wait", "job", "stays", "--for", "Cancelled", "--timeout", "60s").returncode == 0
    assert shell.run("delete", "jobset").returncode == 2
