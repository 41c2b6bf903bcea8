"""The command ``holdfast`` as people use it: real processes, exit codes, two shells, a server, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import commands
from tests.e2e.commands import HOLDFAST
from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATIENCE_S = 60.0
HOLD = """
apiVersion: holdfast.dev/v1
kind: RetryPolicy
metadata: {name: ask}
spec: {rules: [{name: person, action: Hold, reason: look at it}]}
"""
UNTIL_THIRD = 'echo "attempt $HOLDFAST_ATTEMPT"; test "$HOLDFAST_ATTEMPT" = 3 || exit 3'


@dataclass
class Said:
    """How one command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - any document
        return json.loads(self.out)


@dataclass
class Shell:
    """A person's shell: an environment and a place."""

    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def _whole(self) -> Mapping[str, str]:
        return {**os.environ, "HOLDFAST_DATA": str(self.folder / "data"), **self.environ}

    @contextmanager
    def start(self, *words: str) -> Iterator[subprocess.Popen[str] | commands.Piped]:
        """Start a command; one that does not end by itself is killed with the test."""
        if Server.forks and commands.can_be_forked(self._whole):
            with commands.Piped(words, self._whole, folder=self.folder) as command:
                yield command
            return
        with subprocess.Popen(
            [*HOLDFAST, *words],
            cwd=self.folder,
            env=self._whole,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    def run(self, *words: str) -> Said:
        if Server.forks and commands.can_be_forked(self._whole):
            ended = commands.run(words, self._whole, folder=self.folder, patience_s=PATIENCE_S)
            return Said(ended.returncode, ended.stdout, ended.stderr)
        with self.start(*words) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
            return Said(process.wait(), out, err)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell with a data directory of its own and no server."""
    return Shell(tmp_path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell on whose data directory a server runs."""
    shell = Shell(tmp_path_factory.mktemp("served"), {"HOLDFAST_CPUS": "4"})
    with shell.start("up", "--port", "0") as server:
        assert server.stderr is not None
        assert "holdfast is up at http://127.0.0.1:" in server.stderr.readline()
        yield shell
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=PATIENCE_S)


def test_without_a_server_a_job_runs_where_the_caller_is(shell: Shell) -> None:
    said = shell.run("run", "--env", "GREETING=hello", "--", "sh", "-c", 'echo "$GREETING from $PWD"')
    assert (said.code, said.out, said.err) == (0, f"hello from {shell.folder}\n", "")


def test_a_program_of_the_callers_active_environment_is_found_by_the_server(served: Shell) -> None:
    program = served.folder / "venv" / "bin" / "greet"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "hello from $VIRTUAL_ENV"\n')
    program.chmod(0o700)
    active = {"PATH": f"{program.parent}:/usr/bin:/bin", "VIRTUAL_ENV": "/venv"}
    found = Shell(served.folder, {**served.environ, **active})
    assert found.run("run", "--", "greet").out == "hello from /venv\n"
    assert found.run("run", "--export", "NONE", "--", "greet").code != 0
    (served.folder / "greeting.yaml").write_text('{name: greeting, shell: "greet && pwd", env: {VIRTUAL_ENV: /own}}')
    assert found.run("submit", "-f", "greeting.yaml", "--wait").code == 0
    assert served.run("logs", "greeting").out == f"hello from /own\n{served.folder}\n"
    assert found.run("submit", "-f", "greeting.yaml", "--export", "NONE", "--wait").code == 1


@pytest.mark.parametrize(
    ("program", "code"),
    [("exit 3", 3), ("kill -9 $$", 137), ("exec no-such-program", 127)],
)
def test_run_ends_as_its_job_ended(served: Shell, program: str, code: int) -> None:
    assert served.run("run", "--", "sh", "-c", program).code == code


def test_a_program_that_does_not_exist_is_127_as_in_a_shell(served: Shell) -> None:
    said = served.run("run", "--", "no-such-program")
    assert said.code == 127
    assert "no-such-program" in said.err


def test_each_retry_is_told_in_one_line(served: Shell) -> None:
    said = served.run("run", "--retries", "3", "--backoff", "10ms", "--", "sh", "-c", UNTIL_THIRD)
    assert (said.code, said.out) == (0, "attempt 1\nattempt 2\nattempt 3\n")
    assert said.err.splitlines() == [
        "attempt 1 failed: exit code 3; retry 1/3 in 10ms (rule retries, policy inline)",
        "attempt 2 failed: exit code 3; retry 2/3 in 20ms (rule retries, policy inline)",
    ]


def test_a_denied_exit_code_is_not_retried(served: Shell) -> None:
    said = served.run("run", "--retries", "3", "--no-retry-on-exit", "3", "--", "sh", "-c", "exit 3")
    assert said.code == 3
    assert said.err.count("attempt") == 1


def test_lines_of_a_gang_carry_their_rank(served: Shell) -> None:
    said = served.run("run", "--gang", "2", "--cpus", "0.1", "--", "sh", "-c", "echo of $HOLDFAST_SIZE")
    assert sorted(said.out.splitlines()) == ["[0] of 2", "[1] of 2"]


def test_a_held_job_ends_run_with_75_and_goes_on_when_released(served: Shell) -> None:
    (served.folder / "ask.yaml").write_text(HOLD)
    program = 'test "$HOLDFAST_ATTEMPT" = 2'
    said = served.run("run", "--name", "asks", "--policy", "./ask.yaml", "--", "sh", "-c", program)
    assert said.code == 75
    assert "held: look at it" in said.err
    assert served.run("wait", "asks", "--timeout", "0s").code == 124
    assert served.run("release", "asks").code == 0
    assert served.run("wait", "asks").code == 0


def test_ctrl_c_asks_once_and_cancels_on_the_second(served: Shell) -> None:
    with served.start("run", "--name", "long", "--", "sh", "-c", "echo up; exec sleep 60") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "up\n"
        os.killpg(process.pid, signal.SIGINT)
        assert "press Ctrl-C again to cancel" in process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)
        assert "cancelling" in process.stderr.readline()
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130
    assert served.run("get", "job", "long", "-o", "json").json["state"] == "Cancelled"


def test_what_stops_run_stops_its_job(served: Shell) -> None:
    with served.start("run", "--name", "stopped", "--", "sh", "-c", "echo up; exec sleep 60") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 143
    assert served.run("get", "job", "stopped", "-o", "json").json["state"] == "Cancelled"


def test_output_that_cannot_be_written_is_an_error_in_words(served: Shell) -> None:
    environ = {**os.environ, "HOLDFAST_DATA": str(served.folder / "data"), **served.environ}
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*HOLDFAST, "get", "jobs"], env=environ, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ended.returncode, ended.stderr) == (1, "error: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_what_stops_run_stops_its_array_with_a_server_and_without(
    shell: Shell, request: pytest.FixtureRequest, number: int, code: int
) -> None:
    for place, name in ((shell, "alone"), (request.getfixturevalue("served"), f"stopped-{code}")):
        with place.start("run", "--name", name, "--array", "0-3", "--cpus", "0.1", "--", "sleep", "60") as process:
            assert process.stderr is not None
            assert "has 4 tasks" in process.stderr.readline()
            os.killpg(process.pid, number)
            if number == signal.SIGINT:
                assert f"array {name} is still running; press Ctrl-C again" in process.stderr.readline()
                os.killpg(process.pid, number)
            process.communicate(timeout=PATIENCE_S)
            assert process.returncode == code
        view = place.run("get", "array", name, "-o", "json").json
        assert (view["state"], view["running"], view["succeeded"]) == ("Cancelled", 0, 0)


@pytest.mark.slow
def test_a_server_that_goes_away_leaves_the_name_of_the_job_that_goes_on(shell: Shell) -> None:
    program = "echo up; while ! test -e over; do sleep 0.05; done; exit 0"
    with shell.start("up", "--port", "0") as server:
        assert server.stderr is not None
        assert "holdfast is up" in server.stderr.readline()
        shell.environ = {**shell.environ, "HOLDFAST_PATIENCE": "500ms"}
        with shell.start("run", "--name", "left", "--", "sh", "-c", program) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            server.terminate()
            server.communicate(timeout=PATIENCE_S)
            _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "lost track of job" in err, "holdfast up" in err) == (5, True, True)
    (shell.folder / "over").touch()
    job_id = err.split("lost track of job ", 1)[1].partition(";")[0]
    assert shell.run("wait", job_id).code == 0


def test_a_detached_job_is_found_by_every_other_command(shell: Shell) -> None:
    submitted = shell.run("run", "--detach", "--name", "later", "--", "sh", "-c", "echo done; exit 4")
    job = submitted.out.strip()
    assert "no server is running" in submitted.err
    assert shell.run("get", "jobs", "--state", "queued", "-o", "name").out == f"job/{job}\n"
    assert shell.run("wait", job).code == 1
    assert shell.run("logs", "later").out == "done\n"
    shell.run("run", "--name", "counts", "--", "seq", "5")
    assert shell.run("logs", "counts", "--tail", "2").out == "4\n5\n"
    assert shell.run("logs", "later", "counts", "-n", "1").out == "[later] done\n[counts] 5\n"
    assert "name one job for --attempt or --rank" in shell.run("logs", "later", "counts", "--rank", "0").err
    assert "keeps standard output and standard error in one log" in shell.run("logs", "later", "--stderr").err
    why = shell.run("why", job[:12])
    assert why.code == 0
    assert "exit code 4" in why.out


def test_streams_that_are_kept_apart_are_printed_each_to_its_own_and_rules_look_into_both(shell: Shell) -> None:
    rule = {"name": "fabric", "action": "Hold", "onLog": {"pattern": "^NCCL"}, "reason": "look at it"}
    job = {
        "name": "apart",
        "shell": "echo out; echo NCCL error >&2; exit 1",
        "logs": "separate",
        "retry": {"rules": [rule]},
    }
    (shell.folder / "apart.json").write_text(json.dumps(job))
    shell.run("submit", "-f", str(shell.folder / "apart.json"))
    shell.run("wait", "apart", "--for", "Held")
    both = shell.run("logs", "apart")
    assert (both.out, both.err) == ("out\n", "NCCL error\n")
    only = [shell.run("logs", "apart", stream) for stream in ("--stdout", "--stderr")]
    assert [(one.out, one.err) for one in only] == [("out\n", ""), ("", "NCCL error\n")]
    assert shell.run("logs", "apart", "--stdout", "--stderr").code == 2


@pytest.mark.parametrize("retries", [(), ("--retries", "1", "--backoff", "0s")], ids=["no policy", "retries spent"])
def test_why_of_a_plain_failure_fits_a_screen_and_says_nothing_twice(shell: Shell, retries: tuple[str, ...]) -> None:
    shell.run("run", "--name", "plain", *retries, "--", "sh", "-c", "exit 5")
    said = shell.run("why", "plain").out.splitlines()
    wrapped = [part for line in said for part in textwrap.wrap(line, 80)]
    assert len(wrapped) <= 12, said
    assert sum("exit code 5" in line for line in said) == sum("retried" in line for line in said) == 1, said
    hidden = [name for name in ("preempted", "node-lost", "globalMaxRetries") if name in "".join(said)]
    assert (hidden, "--all" in said[-1]) == ([], not retries)
    everything = shell.run("why", "plain", "--all").out
    considered = json.loads(shell.run("why", "plain", "-o", "json").out)["decision"]["considered"]
    assert [rule["rule"] for rule in considered if rule["rule"] not in everything] == []
    assert "globalMaxRetries" in everything


def test_a_job_as_json_says_what_happened_and_what_was_decided(served: Shell) -> None:
    served.run("run", "--name", "thrice", "--retries", "2", "--backoff", "0s", "--", "sh", "-c", UNTIL_THIRD)
    job = served.run("get", "job", "thrice", "-o", "json").json
    assert {"id", "name", "queue", "state", "reason", "attempts"} <= set(job)
    first = job["attempts"][0]
    assert {"number", "state", "cause", "exit_code", "signal", "node", "started_at", "ended_at", "runs"} <= set(first)
    decision = first["decision"]
    assert {"action", "policy", "rule", "policy_revision", "reason", "delay_s", "retry_at"} <= set(decision)
    assert {"name": "inline/retries", "used": 0, "limit": 2} in decision["limits"]
    assert [rule["matched"] for rule in decision["considered"]][-1] is True
    assert [attempt["number"] for attempt in job["attempts"]] == [1, 2, 3]


def test_without_a_server_a_job_is_cancelled_by_the_one_who_asks(shell: Shell) -> None:
    pid = shell.folder / "pid"
    program = f"echo $$ > {pid}.new && mv {pid}.new {pid} && exec sleep 1000"
    with shell.start("run", "--name", "endless", "--", "sh", "-c", program) as running:
        wait_until(pid.exists, "the program runs")
        running.kill()
        running.wait()
    shell.run("run", "--detach", "--name", "later", "--", "true")
    said = shell.run("cancel", "endless")
    assert said.code == 0, said.err
    assert shell.run("get", "job", "endless", "-o", "json").json["state"] == "Cancelled"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert shell.run("get", "job", "later", "-o", "json").json["state"] == "Queued"
    assert shell.run("cancel", "later").code == 0
    assert shell.run("get", "job", "later", "-o", "json").json["state"] == "Cancelled"


def test_many_jobs_are_submitted_from_a_file_and_waited_for(served: Shell) -> None:
    lines = [json.dumps({"name": f"bulk-{n}", "command": ["true"], "labels": {"batch": "x"}}) for n in range(20)]
    (served.folder / "jobs.jsonl").write_text("\n".join(lines))
    said = served.run("submit", "-f", "jobs.jsonl", "--wait")
    assert (said.code, len(said.out.splitlines())) == (0, 20)
    listed = served.run("get", "jobs", "--label", "batch=x", "-o", "json").json
    assert {job["state"] for job in listed["items"]} == {"Succeeded"}
    assert len(served.run("get", "jobs", "--label", "batch=x", "--limit", "7", "-o", "name").out.splitlines()) == 7


def test_an_error_in_a_file_says_its_line_and_nothing_is_stored(served: Shell) -> None:
    (served.folder / "bad.yaml").write_text("name: fine\ncommand: [x]\n---\nname: bad\ncommand: [x]\ngangs: 2\n")
    said = served.run("submit", "-f", "bad.yaml")
    assert said.code == 2
    assert "bad.yaml: gangs (line 6)" in said.err
    assert served.run("get", "job", "fine").code == 3


def test_policies_and_queues_are_applied_changed_and_deleted(served: Shell) -> None:
    (served.folder / "ask.yaml").write_text(HOLD)
    assert served.run("apply", "-f", "ask.yaml").out == "retrypolicy ask applied\n"
    assert served.run("create", "queue", "ml", "--retry-policy", "ask", "--weight", "2").code == 0
    assert served.run("create", "queue", "ml").code == 4
    assert served.run("update", "queue", "ml", "--weight", "3").code == 0
    queue = served.run("get", "queue", "ml", "-o", "json").json
    assert (queue["spec"]["weight"], queue["spec"]["retryPolicies"]) == (3.0, ["ask"])
    assert served.run("delete", "retry-policy", "ask").code == 4
    assert served.run("delete", "queue", "ml").code == 0
    assert served.run("delete", "retryPolicies", "ask").code == 0
    assert served.run("get", "retrypolicies", "-o", "name").out == ""


def test_a_queue_that_limits_what_nobody_has_is_taken_with_a_warning_at_its_line(served: Shell) -> None:
    head = "apiVersion: holdfast.dev/v1\nkind: Queue\nmetadata: {name: limited}\n"
    (served.folder / "queue.yaml").write_text(f"{head}spec:\n  maxRunning: {{cpu: 1, licence/matlab: 2}}\n")
    said = [
        served.run(*words)
        for words in (
            ("apply", "-f", "queue.yaml", "--dry-run"),
            ("create", "-f", "queue.yaml"),
            ("apply", "-f", "queue.yaml"),
            ("update", "queue", "limited", "--weight", "3", "--dry-run"),
            ("update", "queue", "limited", "--weight", "3"),
        )
    ]
    what = "no node has any licence/matlab; "
    assert [(one.code, one.err.count(what)) for one in said] == [(0, 1)] * len(said)
    assert said[1].err.startswith(f"warning: queue.yaml: spec.maxRunning.licence/matlab (line 5): {what}")
    assert said[3].err.startswith(f"warning: spec.maxRunning.licence/matlab: {what}")
    assert served.run("get", "queue", "limited", "-o", "json").json["warnings"]
    assert served.run("update", "settings", "--resource", "licence/matlab=4").code == 0
    assert served.run("apply", "-f", "queue.yaml").err == ""
    assert served.run("delete", "queue", "limited").code == 0


def test_a_category_that_does_not_exist_is_warned_of_at_its_line_unless_the_same_file_has_it(served: Shell) -> None:
    head = "apiVersion: holdfast.dev/v1, metadata: {name: mine}"
    rules = "{action: Retry, onCategory: [mine, gpu]},\n  {action: Retry, onCategory: [theirs]}"
    policy = f"{{{head}, kind: RetryPolicy, spec: {{rules: [{rules}]}}}}"
    category = f"{{{head}, kind: FailureCategory, spec: {{rules: [{{onLog: {{pattern: x}}}}]}}}}"
    (served.folder / "both.yaml").write_text(f"{policy}\n---\n{category}\n")
    for more in (("--dry-run",), ()):
        said = served.run("apply", "-f", "both.yaml", *more)
        assert (said.code, said.err.count("warning: ")) == (0, 1), said
        unknown = "spec.rules[1].onCategory (line 2): failure category 'theirs' does not exist"
        assert said.err.startswith(f"warning: both.yaml: {unknown}"), said
    assert served.run("delete", "failurecategory", "mine").code == 0
    told = "retry policy mine: spec.rules[0].onCategory: failure category 'mine' does not exist"
    assert f"warn  catalogue       {told}" in served.run("doctor").out
    assert served.run("delete", "retrypolicy", "mine").code == 0


def test_a_dry_run_finds_what_the_real_one_would_and_ends_alike(served: Shell) -> None:
    file = served.folder / "dry.yaml"
    queue = "apiVersion: holdfast.dev/v1\nkind: Queue\nmetadata: {name: dry}\nspec: {retryPolicies: [ask-dry]}\n"
    job = "apiVersion: holdfast.dev/v1\nkind: Job\nmetadata: {name: dry}\nspec: {command: ['true'], queue: dry}\n"
    together = (HOLD.replace("ask", "ask-dry"), queue, job)
    file.write_text("---\n".join(together))
    for verb in ("apply", "create"):
        said = served.run(verb, "-f", str(file), "--dry-run")
        assert (said.code, said.err) == (0, "")
        assert said.out.count("kind:") == 3
    assert served.run("get", "queue", "dry").code == 3
    file.write_text("---\n".join(together[1:]))
    for words in (("apply", "-f", str(file)), ("create", "queue", "dry", "--retry-policy", "ask-dry")):
        dry, real = served.run(*words, "--dry-run"), served.run(*words)
        assert (dry.code, real.code) == (2, 2)
        assert "retry policy 'ask-dry' does not exist" in dry.err
        assert dry.out == ""
    file.write_text(job)
    dry, real = served.run("submit", "-f", str(file), "--dry-run"), served.run("submit", "-f", str(file))
    assert (dry.code, dry.err) == (real.code, real.err)
    assert real.code == 2


def test_one_number_lowered_stops_retries(served: Shell) -> None:
    served.run("update", "settings", "--global-max-retries", "0")
    said = served.run("run", "--retries", "3", "--", "sh", "-c", "exit 3")
    served.run("update", "settings", "--global-max-retries", "none")
    assert said.code == 3
    assert said.err.count("attempt") == 1


def test_two_shells_share_one_data_directory(shell: Shell) -> None:
    os.mkfifo(shell.folder / "gate")
    with shell.start("run", "--cpus", "0.1", "--", "sh", "-c", "echo first; read line < gate") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "first\n"
        second = shell.run("run", "--cpus", "0.1", "--", "sh", "-c", "echo second; echo go > gate")
        assert (second.code, second.out) == (0, "second\n")
        assert first.wait(timeout=PATIENCE_S) == 0


def test_a_server_is_found_by_address_and_token_too(served: Shell, tmp_path: Path) -> None:
    address = json.loads((served.folder / "data" / "server.json").read_text())
    assert (served.folder / "data" / "server.json").stat().st_mode & 0o777 == 0o600
    elsewhere = {"HOLDFAST_URL": address["url"], "HOLDFAST_TOKEN": address["token"]}
    assert Shell(tmp_path, elsewhere).run("get", "queues", "-o", "name").out == "queue/default\n"
    assert Shell(tmp_path, {**elsewhere, "HOLDFAST_TOKEN": "wrong"}).run("get", "queues").code == 4
    assert Shell(tmp_path, {"HOLDFAST_URL": "http://127.0.0.1:9"}).run("get", "queues").code == 5


def test_a_second_server_is_refused(served: Shell) -> None:
    said = served.run("up", "--port", "0")
    assert said.code == 5
    assert "is held by holdfast up" in said.err


def test_off_a_terminal_output_has_no_colours(served: Shell) -> None:
    coloured = Shell(served.folder, {**served.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"})
    coloured.run("run", "--name", "plain", "--", "sh", "-c", "exit 1")
    said = [coloured.run(*words) for words in (("get", "jobs"), ("why", "plain"), ("describe", "plain"), ("--help",))]
    assert [one.code for one in said] == [0, 0, 0, 0]
    assert "\x1b" not in "".join(one.out + one.err for one in said)


def test_a_reader_that_goes_away_is_no_error(served: Shell) -> None:
    with served.start("get", "jobs") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=PATIENCE_S) == 0


def test_help_comes_at_once(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the median, and fails only when far off: the machine may be busy."""
    spent = []
    for _ in range(5):
        begun = time.perf_counter()
        with shell.start("--help") as process:
            process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        spent.append(time.perf_counter() - begun)
    with capsys.disabled():
        sys.stdout.write(f"\nholdfast --help: median {statistics.median(spent) * 1000:.0f} ms\n")
    assert statistics.median(spent) < 2.0
