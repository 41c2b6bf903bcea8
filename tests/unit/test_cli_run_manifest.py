"""What ``holdfast run`` makes of its flags, read back by the native dialect; nothing runs."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.main import parse
from holdfast.cli.manifests import read_manifests
from holdfast.cli.nouns import Noun
from holdfast.cli.submission.export import carrying
from holdfast.cli.submission.job_manifest import manifest_of
from holdfast.cli.submission.sending import submit_jobs
from holdfast.domain.devices import ANY, GpuSelector
from holdfast.domain.job import Resources
from holdfast.domain.policy.model import Action
from holdfast.domain.terms.settings import UnknownEnd
from holdfast.domain.workloads.watching import EarlyWarning, StallLimits
from holdfast.errors import InvalidRequest
from holdfast.wire.jobs import BulkItem, BulkResult
from tests.reading import read_job_mapping

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import Client
    from holdfast.domain.workloads.spec import JobSpec

POLICY = """
apiVersion: holdfast.dev/v1
kind: RetryPolicy
metadata: {name: net}
spec: {retryLimit: 5, rules: [{name: dns, action: Retry, onExitCodes: {operator: In, values: [75]}}]}
"""


SEVERAL = """
{command: ["true"], env: {K: v}}
---
spec: {command: ["true"], env: {PATH: /bin}, workingDir: /srv}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {}}}
---
{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: b}, spec: {}}
"""


def manifest(*flags: str, environ: dict[str, str] | None = None) -> dict[str, Any]:
    parsed = parse(["run", *flags, "--", "python", "train.py", "--lr", "1"])
    assert parsed is not None
    cli = Cli(stderr=io.StringIO(), environ=environ or {}, cwd=lambda: "/home/me")
    return dict(manifest_of(parsed[1], cli, Flags()))


def job(*flags: str, environ: dict[str, str] | None = None) -> JobSpec:
    return read_job_mapping(manifest(*flags, environ=environ))


def problems(*flags: str) -> dict[str, str]:
    with pytest.raises(InvalidRequest) as caught:
        manifest(*flags)
    return {problem.path: str(problem) for problem in caught.value.problems}


SHELL = {
    "PATH": "/venv/bin:/bin",
    "VIRTUAL_ENV": "/venv",
    "CONDA_PREFIX": "/conda",
    "HOME": "/home/me",
    "HOLDFAST_TOKEN": "secret",
    "SHLVL": "2",
    "LATIN": "caf\udce9",
}


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ((), {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX"}),
        (("--export", "NONE"), set()),
        (("--export", "ALL"), {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME"}),
        (("--export", "HOME, CONDA_*,NOTHING_*"), {"HOME", "CONDA_PREFIX"}),
        (("--export", "HOLDFAST_*"), set()),
    ],
)
def test_a_program_gets_the_variables_of_the_shell_that_are_exported(flags: tuple[str, ...], names: set[str]) -> None:
    assert dict(job(*flags, environ=SHELL).env) == {name: SHELL[name] for name in names}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_manifests_are_given_what_the_shell_has_under_what_they_say_themselves() -> None:
    stderr = Terminal()
    cli = Cli(stdin=io.StringIO(SEVERAL), stderr=stderr, cwd=lambda: "/home/me")
    read = read_manifests(["-"], cli, allowed=(Noun.JOB, Noun.JOB_SET))
    flat, nested, kube, job_set = (one.value for one in carrying(read, {"PATH": "/venv/bin"}, cli))
    assert (flat["env"], flat["workingDir"]) == ({"PATH": "/venv/bin", "K": "v"}, "/home/me")
    assert nested["spec"]["env"] == {"PATH": "/bin"}
    assert nested["spec"]["workingDir"] == "/srv"
    assert [kube, job_set] == [one.value for one in read[2:]]
    told = "from this shell, unless a job sets its own: PATH; working directory /home/me (turn off: --export NONE)\n"
    assert stderr.getvalue() == told


@pytest.mark.parametrize("needs", ["inputs: [{path: a, text: b}]", "keepWorkDirectory: false"])
def test_a_job_that_needs_a_folder_of_its_own_is_not_put_into_the_shells(needs: str) -> None:
    cli = Cli(stdin=io.StringIO(f'{{command: ["true"], {needs}}}'), stderr=io.StringIO(), cwd=lambda: "/home/me")
    [carried] = carrying(read_manifests(["-"], cli, allowed=(Noun.JOB,)), {"PATH": "/bin"}, cli)
    assert read_job_mapping(carried.value).working_dir is None


def test_manifests_that_are_too_many_bytes_for_one_request_go_in_several() -> None:
    cli = Cli(stdin=io.StringIO("\n".join('{"command": ["true"]}' for _ in range(20))), stderr=io.StringIO())
    read = carrying(read_manifests(["-"], cli, allowed=(Noun.JOB,)), {"PATH": "x" * (1 << 20)}, cli)
    server = _Counting()
    assert len(submit_jobs(cast("Client", server), read, cli)) == 20
    assert server.sent == [14, 6]


class _Counting:
    def __init__(self) -> None:
        self.sent: list[int] = []

    def check(self, _manifests: object, **_: object) -> None: ...

    def submit_bulk(self, manifests: list[object], **_: object) -> BulkResult:
        self.sent.append(len(manifests))
        return BulkResult(items=[BulkItem(index=place, status="accepted") for place in range(len(manifests))])


def test_a_variable_that_is_named_beats_one_that_is_exported() -> None:
    assert dict(job("--env", "PATH=/bin", environ={"PATH": "/venv/bin"}).env) == {"PATH": "/bin"}


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("CUDA", "'CUDA' is not set here"),
        ("LATIN", "the value of 'LATIN' is not UTF-8 text"),
        ("HOLDFAST_TOKEN", "'HOLDFAST_TOKEN' is not set here"),
    ],
)
def test_a_variable_to_export_that_cannot_be_had_is_named(name: str, trouble: str) -> None:
    with pytest.raises(InvalidRequest, match=f"--export: {trouble}"):
        manifest("--export", f"PATH,{name}", environ=SHELL)


def test_the_command_after_the_dashes_is_taken_as_it_is() -> None:
    assert job().command == ("python", "train.py", "--lr", "1")


def test_the_first_word_that_is_no_flag_ends_the_flags() -> None:
    parsed = parse(["run", "--retries", "2", "python", "train.py", "--retries", "9"])
    assert parsed is not None
    assert parsed[1].command == ["python", "train.py", "--retries", "9"]
    assert parsed[1].retries == "2"


def test_a_job_is_named_after_its_program_unless_it_has_a_name() -> None:
    assert job().name == "python"
    assert job("--name", "train").name == "train"


def test_it_starts_where_the_caller_is() -> None:
    assert job().working_dir == "/home/me"
    assert job("--workdir", "sub").working_dir == "/home/me/sub"
    assert job("--workdir", "/srv").working_dir == "/srv"


def test_sizes_times_and_places_arrive() -> None:
    spec = job(
        *("--cpus", "0.5", "--memory", "2Gi", "--gpus", "1", "--gang", "4", "--queue", "ml", "--priority", "-3"),
        *("--timeout", "1h", "--grace", "3s", "--label", "team=nlp"),
        *("--stall-no-output", "10m", "--stall-no-progress", "1h"),
        *("--signal", "USR2@2m", "--checkpointed-exit-code", "99"),
    )
    assert (spec.resources.cpu_m, spec.resources.memory, spec.resources.gpu) == (500, 2 << 30, 1)
    assert (spec.gang, spec.queue, spec.priority) == (4, "ml", -3)
    assert (spec.deadline_s, spec.grace_s, spec.labels) == (3600.0, 3.0, {"team": "nlp"})
    assert spec.stall == StallLimits(600.0, 3600.0)
    assert (spec.warning, spec.checkpointed_exit_code) == (EarlyWarning(120.0, "USR2"), 99)
    assert job("--signal", "2m").warning == EarlyWarning(120.0)


def test_a_variable_without_a_value_takes_the_callers() -> None:
    spec = job("--env", "LR=0.1", "-e", "HOME", environ={"HOME": "/home/me"})
    assert spec.env == {"LR": "0.1", "HOME": "/home/me"}


def test_without_retry_flags_there_is_no_policy() -> None:
    assert job().inline_policies == ()


def test_retries_become_a_policy_that_retries_anything_so_often() -> None:
    (policy,) = job("--retries", "3").inline_policies
    assert (policy.name, policy.retry_limit, policy.default_action) == ("inline", 3, Action.RETRY)
    assert [(rule.name, rule.action, rule.exit_codes) for rule in policy.rules] == [("retries", Action.RETRY, None)]


@pytest.mark.parametrize("word", ["Hold", "hold"])
def test_what_happens_after_an_unknown_end_is_said_by_a_flag(word: str) -> None:
    assert job("--on-unknown-end", word).on_unknown_end is UnknownEnd.HOLD


def test_retry_on_exit_retries_nothing_else() -> None:
    (policy,) = job("--retries", "3", "--retry-on-exit", "137,143").inline_policies
    (rule,) = policy.rules
    assert rule.exit_codes is not None
    assert (rule.action, rule.exit_codes.values) == (Action.RETRY, frozenset({137, 143}))
    assert policy.default_action is Action.FAIL


def test_retry_on_exit_alone_is_bounded() -> None:
    (policy,) = job("--retry-on-exit", "137").inline_policies
    assert policy.retry_limit == 3


def test_denied_exit_codes_come_before_allowed_ones() -> None:
    (policy,) = job("--retries", "3", "--retry-on-exit", "1,2", "--no-retry-on-exit", "2").inline_policies
    assert [rule.action for rule in policy.rules] == [Action.FAIL, Action.RETRY]


def test_backoff_flags_become_the_policys_backoff() -> None:
    flags = ("--retries", "1", "--backoff", "2s", "--max-backoff", "5m", "--multiplier", "3")
    (policy,) = job(*flags).inline_policies
    assert policy.backoff is not None
    assert (policy.backoff.initial_s, policy.backoff.max_s, policy.backoff.multiplier) == (2.0, 300.0, 3.0)


def test_policies_are_named_or_read_from_files_in_order(tmp_path: Path) -> None:
    file = tmp_path / "net.yaml"
    file.write_text(POLICY)
    spec = job(
        "--policy", "infra", "--policy", str(file), "--policy", "ml", "--retries", "2", "--no-retry-on-exit", "9"
    )
    assert spec.retry_policies == ("infra", "ml")
    assert [policy.name for policy in spec.inline_policies] == ["no-retry-on-exit", "net", "inline"]
    assert spec.inline_policies[1].retry_limit == 5


def test_a_file_of_another_kind_is_no_policy(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("{kind: Job, command: [x]}")
    assert "may contain only RetryPolicy documents" in problems("--policy", str(file))["--policy"]


def test_a_missing_policy_file_says_so() -> None:
    assert "No such file" in problems("--policy", "./none.yaml")["--policy ./none.yaml"]


def test_every_wrong_flag_is_reported_at_once() -> None:
    wrong = problems(
        *("--retries", "x", "--backoff", "soon", "--cpus", "many", "--memory", "2Q", "--gang", "0", "--timeout", "-1s"),
        *("--env", "=v", "--label", "team", "--retry-on-exit", "0,300", "--multiplier", "0.5", "--priority", "high"),
    )
    expected = "retries backoff cpus memory gang timeout env label retry-on-exit multiplier priority"
    assert set(wrong) == {f"--{name}" for name in expected.split()}


@pytest.mark.parametrize(
    ("flags", "path", "says"),
    [
        (("--gang", "0"), "--gang", "allowed: 1 to 100000"),
        (("--on-unknown-end", "shrug"), "--on-unknown-end", "allowed: Retry, Hold, Fail"),
        (("--retry-on-exit", "300"), "--retry-on-exit", "allowed: 1 to 255"),
        (("--memory", "2Q"), "--memory", "512Mi, 2Gi"),
        (("--backoff", "1s"), "--backoff", "hint: add --retries N"),
        (("--env", "ABSENT"), "--env", "hint: write --env ABSENT=VALUE, or export it first"),
        (("--label", "team"), "--label", "hint: write --label team=VALUE"),
    ],
)
def test_a_wrong_flag_says_what_is_allowed_or_what_to_do(flags: tuple[str, ...], path: str, says: str) -> None:
    assert says in problems(*flags)[path]


@pytest.mark.parametrize(
    ("flags", "asked", "wanted"),
    [
        (("--gpus", "2"), Resources(gpu=2), ANY),
        (("--gpus", "0.25"), Resources(share_m=250), ANY),
        (("--gpus", "shared", "--gpu-type", "T4"), Resources(share_m=250), GpuSelector("T4")),
        (("--gpu-type", "A100*"), Resources(gpu=1), GpuSelector("A100*")),
        (("--gpu-memory", "40Gi"), Resources(gpu=1), GpuSelector(memory=40 << 30)),
        (("--gpus", "2", "--gpu-type", "A*", "--gpu-memory", "8Gi"), Resources(gpu=2), GpuSelector("A*", 8 << 30)),
        (("--resource", "licence/matlab=1"), Resources(named=(("licence/matlab", 1000),)), ANY),
        (
            ("--resource", "scratch=2Gi", "--resource", "token/s3=0.5"),
            Resources(named=(("scratch", (2 << 30) * 1000), ("token/s3", 500))),
            ANY,
        ),
    ],
)
def test_flags_ask_for_gpus_of_a_kind_and_for_what_has_a_name(
    flags: tuple[str, ...], asked: Resources, wanted: GpuSelector
) -> None:
    spec = job(*flags)
    assert (spec.resources, spec.gpus) == (asked, wanted)


@pytest.mark.parametrize(
    ("flags", "path"),
    [
        (("--gpus", "1.5"), "gpu"),
        (("--gpu-memory", "plenty"), "memory"),
        (("--resource", "licence/matlab"), "--resource"),
        (("--resource", "licence/matlab=many"), "licence/matlab"),
    ],
)
def test_what_no_node_could_mean_is_refused_by_the_field_it_is_of(flags: tuple[str, ...], path: str) -> None:
    assert any(path in at for at in problems(*flags))


@pytest.mark.parametrize("is_piped", [True, False])
def test_each_takes_lines_as_they_are_and_ends_them_at_line_feeds_alone(tmp_path: Path, *, is_piped: bool) -> None:
    odd = ["one\u2028still one", "form\x0cfeed", "nel\x85nel", "fs\x1cfs", "cr\rcr", " spaces  ", "\u3000"]
    body = ("\ufeff" + "\n".join([*odd, "", " \t", "windows\r", "\r", "last"])).encode()
    file = tmp_path / "lines.txt"
    file.write_bytes(body)
    parsed = parse(["run", "--each", "-" if is_piped else str(file), "--", "echo", "{}"])
    assert parsed is not None
    piped = io.TextIOWrapper(io.BytesIO(body), encoding="ascii")
    made = manifest_of(parsed[1], Cli(stdin=piped, stderr=io.StringIO(), environ={}), Flags())
    assert made["spec"]["array"]["lines"] == [*odd, "windows", "last"]
