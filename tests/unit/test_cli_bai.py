"""``holdfast bai``: what a command line asks for, and how a session reads."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.main import parse, run_line
from holdfast.cli.render.sessions import outcome_of, session_facts
from holdfast.cli.submission.session_flags import read_request
from holdfast.client.backendai.views import BackendAiRetry, BackendAiSession
from holdfast.domain.sessions.model import named_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
FIRST, SECOND = (UUID(named_id("session", name)) for name in ("a", "b"))


def request(*words: str) -> Mapping[str, Any]:
    """Return what a command line would enqueue."""
    parsed = parse(("bai", "session", "enqueue", *words))
    assert parsed is not None
    flags = Flags()
    read = read_request(flags, parsed[1], parsed[1].words, {"HOME": "/root"})
    flags.finish()
    return read


def test_a_command_alone_is_a_batch_session_of_the_only_project_and_image() -> None:
    read = request("--", "python", "train.py", "--lr", "a b")
    assert read["session_name"].startswith("session-")
    assert {**read, "session_name": ""} == {
        "session_name": "",
        "session_type": "batch",
        "image_id": named_id("image", "default"),
        "project_id": named_id("project", "default"),
        "resource_entries": [{"resource_type": "cpu", "quantity": "1"}],
        "batch": {"startup_command": "python train.py --lr 'a b'"},
    }


def test_flags_describe_a_session(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"max_retries": 9, "jitter": "none"}')
    words = "--name n --image i --project p --cpu 0.5 --mem 1Ki --cluster-size 2 --env A=1 -e HOME --tag t --timeout 5m"
    more = (
        "--retries 3 --retry-delay 1m --backoff exponential --causes oom_killed,unknown --starts-at 2026-12-01T06:00Z"
    )
    read = request(*words.split(), *more.split(), "--retry-policy", f"@{policy}", "--depends", str(FIRST), "--", "a; b")
    assert read == {
        "session_name": "n",
        "session_type": "batch",
        "image_id": named_id("image", "i"),
        "project_id": named_id("project", "p"),
        "resource_entries": [
            {"resource_type": "cpu", "quantity": "0.5"},
            {"resource_type": "mem", "quantity": "1024"},
        ],
        "cluster_size": 2,
        "cluster_mode": "multi-node",
        "environ": {"A": "1", "HOME": "/root"},
        "tag": "t",
        "dependencies": [str(FIRST)],
        "retry_policy": {
            "max_retries": 3,
            "jitter": "none",
            "retry_delay": 60.0,
            "backoff": "exponential",
            "eligible_causes": ["oom_killed", "unknown"],
        },
        "batch": {"startup_command": "a; b", "batch_timeout": 300, "starts_at": read["batch"]["starts_at"]},
    }
    assert datetime.fromisoformat(read["batch"]["starts_at"]) == datetime(2026, 12, 1, 6, tzinfo=UTC)


def test_an_interactive_session_has_no_command_and_ids_stand_for_themselves() -> None:
    read = request("--interactive", "--name", "n", "--image", str(FIRST))
    assert (read["session_type"], read["image_id"], "batch" in read) == ("interactive", str(FIRST), False)


def test_a_request_is_taken_as_json_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"session_name": "x"}))
    assert request(f"@{file}") == request('{"session_name": "x"}') == {"session_name": "x"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("kernel", "get", "x"), "'kernel' is unknown"),
        (("session", "restart", "x"), "'restart' is unknown"),
        (("session", "info"), "info takes the id of one session"),
        (("session", "logs", "a", "b"), "logs takes the id of one session"),
        (("session", "terminate"), "terminate needs the id of a session"),
        (("session", "search", "a"), "search takes only flags"),
        (("session", "search", "--limit", "0"), "--limit"),
        (("session", "get", "x", "--retries", "2"), "--retries: does not apply to get"),
        (("session", "attempts", "x", "-o", "xml"), "'xml' is unknown"),
        (("session", "enqueue"), "COMMAND: is required"),
        (("session", "enqueue", "--interactive", "--", "true"), "an interactive session has no command"),
        (("session", "enqueue", "--interactive", "--timeout", "1m"), "--timeout: applies to batch sessions only"),
        (("session", "enqueue", "{}", "--tag", "t"), "--tag: does not apply to a request as JSON"),
        (("session", "enqueue", "@/nowhere.json"), "/nowhere.json cannot be read"),
        (("session", "enqueue", "{"), "PAYLOAD: is not JSON"),
        (("session", "enqueue", "--retry-policy", "[]", "--", "true"), "--retry-policy: is not a JSON object"),
        (("session", "enqueue", "--retries", "1001", "--", "true"), "--retries: '1001' is out of range"),
        (("session", "enqueue", "--backoff", "never", "--", "true"), "--backoff: 'never' is unknown"),
        (("session", "enqueue", "--starts-at", "soon", "--", "true"), "'soon' is not a time in ISO 8601"),
    ],
)
def test_a_wrong_command_line_is_refused_before_anything_is_sent(words: tuple[str, ...], message: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    code = run_line(("bai", *words), Cli(stdout=out, stderr=err, environ={}))
    assert (code, out.getvalue(), message in err.getvalue()) == (2, "", True), err.getvalue()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("none", ""),
        ("pending", ", next retry in 90s"),
        ("retried", f", retried as {SECOND}"),
        ("exhausted", ", no retries are left"),
        ("not_eligible", ", its failure is not retried"),
        ("cancelled", ", its retry was cancelled"),
        ("disabled", ", retries are switched off"),
        ("unheard", ", unheard"),
    ],
)
def test_what_becomes_of_a_failure_is_said(state: str, words: str) -> None:
    due = NOW + timedelta(seconds=90)
    retry = BackendAiRetry(state=state, attempt=1, of=3, next_attempt_at=due, next_session_id=SECOND)
    assert outcome_of(retry, NOW.timestamp()) == words


def test_a_person_reads_the_attempt_and_the_parent_of_a_session() -> None:
    session = BackendAiSession.model_validate(
        {
            "id": SECOND,
            "domain_name": "default",
            "project_id": FIRST,
            "user_id": FIRST,
            "metadata": {"creation_id": "c:retry:1", "name": "train", "session_type": "batch", "cluster_size": 2},
            "lifecycle": {"status": "RUNNING", "result": "undefined", "created_at": NOW},
            "retry_policy": {},
            "parent_session_id": FIRST,
            "retry_count": 1,
            "max_retries": 2,
            "retry_cause": None,
            "retry_chain": [FIRST, SECOND],
            "retry_state": {"state": "none", "attempt": 2, "of": 3},
            "newer": "kept",
        }
    )
    assert session_facts(session, NOW.timestamp()) == [
        ("Session", f"train ({SECOND})"),
        ("Type", "batch, 2 kernels"),
        ("Status", "RUNNING"),
        ("Result", "undefined"),
        ("Retry", "attempt 2 of 3"),
        ("Parent", str(FIRST)),
        ("Created", "2026-11-28T12:00:00Z"),
    ]
    assert session.model_dump()["newer"] == "kept"
