"""``holdfast armada``: the commands of Armada's design, on a data directory without a server."""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING, TypeAlias

import pytest

from holdfast.cli.context import Cli
from holdfast.cli.main import run_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run: TypeAlias = Callable[..., tuple[int, str, str]]

DESIGN = """
    apiVersion: armadaproject.io/v1
    kind: RetryPolicy
    metadata:
      name: ml-training
    spec:
      defaultAction: Fail
      backoff:
        initialDelay: 0s
      antiAffinity:
        mode: none
      rules:
        - action: Retry
          onConditions: [Preempted, Evicted]
          antiAffinity:
            mode: node
        - action: Retry
          onConditions: [OOMKilled]
          retryLimit: 3
        - action: Retry
          onExitCodes: {operator: In, values: [137]}
        - action: Retry
          onFailureCategory: [cuda_error, infiniband_error]
"""
SHIPPED = """
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
    groupOwners: [vision]
"""
USAGE, MISSING, CONFLICT = 2, 3, 4


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command; returns its exit code and what it wrote."""
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "data"))
    for name in ("HOLDFAST_URL", "HOLDFAST_TOKEN", "HOLDFAST_CONTEXT"):
        monkeypatch.delenv(name, raising=False)

    def run_words(*words: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        code = run_line(("armada", *words), Cli(stdout=out, stderr=err))
        return code, out.getvalue(), err.getvalue()

    return run_words


def write(folder: Path, *texts: str) -> str:
    path = folder / "file.yaml"
    path.write_text("---\n".join(map(textwrap.dedent, texts)))
    return str(path)


def test_policies_and_queues_are_created_shown_fed_back_and_deleted(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("create", "-f", write(tmp_path, DESIGN, QUEUE, SHIPPED))
    assert (code, sorted(out.splitlines())) == (
        0,
        ["queue vision created", "retrypolicy infra created", "retrypolicy ml-training created"],
    )
    for kind, name in (("retry-policy", "infra"), ("retrypolicy", "ml-training"), ("queue", "vision")):
        _, shown, _ = run("get", kind, name)
        assert run("update", "-f", write(tmp_path, shown))[0] == 0
        assert run("get", kind, name)[1] == shown
    assert run("get", "retry-policies")[1].count("kind: RetryPolicy") == 2
    assert run("delete", "queue", "vision")[:2] == (0, "queue vision deleted\n")
    assert run("get", "queue", "vision")[0] == MISSING
    assert run("delete", "retry-policy", "infra")[0] == 0


def test_a_queue_is_described_by_flags_and_belongs_to_its_creator(run: Run, tmp_path: Path) -> None:
    run("create", "-f", write(tmp_path, SHIPPED))
    words = ("--priority-factor", "3", "--retry-policy", "infra", "-l", "team=vision", "--cordon")
    assert run("create", "queue", "ml", *words)[0] == 0
    _, shown, _ = run("get", "queue", "ml")
    for part in ("priorityFactor: 3.0\n", "cordoned: true\n", "team: vision\n", "- infra\n", "kind: User\n"):
        assert part in shown
    assert run("create", "queue", "ml")[0] == CONFLICT
    assert run("update", "queue", "ml", "--owners", "ann")[0] == 0
    shown = run("get", "queue", "ml")[1]
    assert ("name: ann\n" in shown, "cordoned" in shown) == (True, False), "what is left out is as in a new queue"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("create",), "holdfast armada create -f FILE"),
        (("create", "queue"), "NAME: is required"),
        (("create", "retry-policy", "p"), "--file: is required for a retry policy"),
        (("create", "queue", "q", "-f", "x.yaml"), "--file: takes neither names nor a description"),
        (("create", "queue", "q", "--priority-factor", "0.5"), "allowed: 1 or more"),
        (("create", "queue", "q", "--retry-policies", "ghost"), "retry policy 'ghost' does not exist"),
        (("create", "queue", "q", "-l", "x"), "--labels"),
        (("get",), "KIND: is required"),
        (("get", "jobs"), "'jobs' is unknown"),
        (("get", "queue", "q", "--cordon"), "get takes only names"),
        (("delete", "queue"), "NAME: is required"),
        (("config", "use-context"), "holdfast armada config reload"),
        (("submit", "jobs.yaml"), "allowed: create, update, get, delete, config"),
    ],
)
def test_a_wrong_command_line_is_refused_with_what_is_right(run: Run, words: tuple[str, ...], message: str) -> None:
    code, out, err = run(*words)
    assert (code, out, message in err) == (USAGE, "", True), err


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("{apiVersion: armadaproject.io/v1beta1, kind: Executor}", ["'Executor' cannot be used here"]),
        (
            "{apiVersion: armadaproject.io/v1beta1, kind: Queue, name: a, priorityFactor: much, labls: {a: b}}",
            ["priorityFactor", "'much'", "unknown field 'labls'", "did you mean labels"],
        ),
        ("{apiVersion: armadaproject.io/v1beta1, kind: Queue, name: a}", ["priorityFactor", "is required"]),
        (
            (
                "{apiVersion: armadaproject.io/v1beta1, kind: Queue, name: a, priorityFactor: 1, permissions: "
                "[{subjects: [{kind: Usr, name: ann}], verbs: [sing]}, 5]}"
            ),
            ["permissions[0].subjects[0].kind", "permissions[0].verbs[0]", "permissions[1]"],
        ),
        (
            "{apiVersion: armadaproject.io/v1beta1, kind: RetryPolicy, name: p, defaultAction: Fail, retryLimt: 3}",
            ["retryLimt"],
        ),
    ],
)
def test_a_wrong_file_is_refused_with_its_fields_before_anything_of_it_is_stored(
    run: Run, tmp_path: Path, text: str, messages: list[str]
) -> None:
    code, _, err = run("create", "-f", write(tmp_path, text))
    assert (code, [message for message in messages if message not in err]) == (USAGE, []), err
    assert run("get", "queues")[1].count("kind: Queue") == 1, "only the default one"
