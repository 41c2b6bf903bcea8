"""What tables and lines say, and that only a terminal gets colours and a width."""

from __future__ import annotations

import io
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from holdfast.cli.printing import print_thing, print_things
from holdfast.cli.render.catalogue import entry_table, queue_table
from holdfast.cli.render.decisions import attempt_line, considered_table
from holdfast.cli.render.jobs import attempt_table, history_table, job_table
from holdfast.cli.render.output import Output, plain_table
from holdfast.cli.render.tree import tree_table
from holdfast.cli.render.words import ending, span, when
from holdfast.wire.entries import EntryView, QueueView
from holdfast.wire.jobs import AttemptView, HistoryEntry, JobSummary

if TYPE_CHECKING:
    from collections.abc import Mapping

RESOURCES = {"cpu": "1", "memory": "0", "gpu": 0}
AT = "2026-01-01T00:00:00.250Z"
RETRY: Mapping[str, Any] = {
    "action": "Retry",
    "code": "retry",
    "policy": "inline",
    "rule": "retries",
    "reason": "matched rule: Retry",
    "delay_s": 1.0,
    "limits": [{"name": "globalMaxRetries", "used": 0, "limit": None}, {"name": "inline", "used": 0, "limit": 3}],
    "considered": [{"policy": "inline", "rule": "retries", "matched": True, "because": "it matches every failure"}],
}
SPENT = [{"name": "inline/retries", "used": 3, "limit": 3}]
FAIL = {
    **RETRY,
    "action": "Fail",
    "code": "fail_policy_limit",
    "reason": "policy retry limit exceeded (3/3)",
    "limits": SPENT,
}


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def attempt(decision: Mapping[str, Any] | None = RETRY, **facts: object) -> AttemptView:
    header = {"number": 1, "state": "Failed", "phase": "ERROR", "created_at": AT, "resources": RESOURCES}
    return AttemptView.model_validate({**header, "decision": decision, **facts})


def summary(**facts: object) -> JobSummary:
    header = {"id": "01", "name": "train", "queue": "ml", "state": "BackOff", "resources": RESOURCES}
    return JobSummary.model_validate({**header, "submitted_at": AT, **facts})


@pytest.mark.parametrize(
    ("failed", "line"),
    [
        (
            attempt(exit_code=3, conditions=["AppError"]),
            "attempt 1 failed: exit code 3; retry 1/3 in 1s (rule retries, policy inline)",
        ),
        (
            attempt({**RETRY, "delay_s": 0.0, "memory": "3Gi"}, exit_code=137, signal=9, conditions=["OOMKilled"]),
            "attempt 1 failed: signal 9 (OOMKilled); retry 1/3 now with 3Gi of memory (rule retries, policy inline)",
        ),
        (
            attempt({**RETRY, "action": "Ignore", "limits": []}, exit_code=1),
            "attempt 1 failed: exit code 1; retry, not counted, in 1s (rule retries, policy inline)",
        ),
        (
            attempt({**RETRY, "limits": []}, exit_code=1),
            "attempt 1 failed: exit code 1; retry in 1s (rule retries, policy inline)",
        ),
        (attempt(FAIL, exit_code=3), "attempt 1 failed: exit code 3; no retry: 3 of 3 retries are used"),
        (
            attempt({**RETRY, "action": "Hold", "reason": "look at it"}, exit_code=3),
            "attempt 1 failed: exit code 3; held: look at it",
        ),
        (
            attempt(FAIL, conditions=["LaunchFailed"], message="cannot start 'x'"),
            "attempt 1 failed: LaunchFailed: cannot start 'x'; no retry: 3 of 3 retries are used",
        ),
        (attempt(None, state="Cancelled", signal=15, exit_code=143), "attempt 1 cancelled: signal 15"),
        (attempt(None), "attempt 1 failed: no reason was given"),
    ],
)
def test_a_failed_attempt_is_told_in_one_line(failed: AttemptView, line: str) -> None:
    assert attempt_line(failed) == line


def test_an_ending_names_code_signal_and_what_the_platform_saw() -> None:
    assert ending(3, None, ["AppError"]) == "exit code 3"
    assert ending(137, 9, ["OOMKilled"]) == "signal 9 (OOMKilled)"
    assert ending(None, None, ["Preempted"]) == "Preempted"


def test_times_are_to_the_second_and_spans_only_of_what_has_ended() -> None:
    assert when(AT) == "2026-01-01T00:00:00Z"
    assert span(AT, "2026-01-01T00:01:30.250Z") == "1m30s"
    assert (when(None), span(AT, None)) == ("", "")


def test_a_waiting_retry_shows_when_it_is_due() -> None:
    waiting = summary(reason="exit code 3", retry_at="2026-01-01T00:03:09.000Z")
    now_s = datetime.fromisoformat("2026-01-01T00:00:04Z").timestamp()
    columns, rows = job_table([waiting], now_s=now_s)
    assert dict(zip(columns, rows[0], strict=True))["REASON"] == "due in 3m5s: exit code 3"
    columns, rows = job_table([waiting], now_s=now_s, wide=True)
    assert dict(zip(columns, rows[0], strict=True))["REASON"] == "due 2026-01-01T00:03:09Z: exit code 3"


@pytest.mark.parametrize(
    ("facts", "took"),
    [
        ({"state": "Queued"}, ""),
        ({"state": "Cancelled", "ended_at": "2026-01-01T00:01:00Z"}, ""),
        ({"state": "Running", "started_at": "2026-01-01T00:01:00Z"}, "2m"),
        ({"state": "BackOff", "started_at": "2026-01-01T00:01:00Z"}, ""),
        ({"state": "Failed", "started_at": "2026-01-01T00:01:00Z", "ended_at": "2026-01-01T00:01:05Z"}, "5s"),
    ],
)
def test_a_job_took_as_long_as_its_programs_ran_however_long_it_waited(facts: dict[str, str], took: str) -> None:
    now_s = datetime.fromisoformat("2026-01-01T00:03:00Z").timestamp()
    columns, rows = job_table([summary(**facts)], now_s=now_s)
    assert dict(zip(columns, rows[0], strict=True))["TOOK"] == took


def test_an_attempt_shows_cause_ending_and_decision() -> None:
    columns, rows = attempt_table(
        [attempt(cause="oom_killed", signal=9, category="memory", subcategory="host")], now_s=0.0
    )
    row = dict(zip(columns, rows[0], strict=True))
    assert (row["CAUSE"], row["ENDED WITH"], row["CATEGORY"]) == ("oom_killed", "signal 9", "memory/host")
    assert row["DECISION"] == "Retry: rule retries"


def test_a_step_shows_how_often_it_was_made_and_where_the_runs_stood() -> None:
    step = HistoryEntry.model_validate(
        {
            "attempt": 1, "seq": 3, "phase": "StartAttempts", "from_status": "PREPARED", "to_status": "PENDING",
            "outcome": "GIVE_UP", "created_at": AT, "updated_at": AT, "error_code": "executor_lost",
            "message": "executor e does not answer", "times": 6,
            "steps": [{"name": "rank 0", "outcome": "GIVE_UP", "message": "PREPARED on node n0"}],
        }
    )  # fmt: skip
    (row,) = history_table([step])[1]
    assert row[:6] == ("1", "StartAttempts", "PREPARED", "PENDING", "GIVE_UP", "6")
    assert row[-1] == "executor_lost: executor e does not answer; rank 0 PREPARED on node n0"


def test_the_rules_considered_are_listed_with_their_reasons() -> None:
    decision = attempt().decision
    assert decision is not None
    assert considered_table(decision)[1] == [("inline", "retries", "yes", "it matches every failure")]


def test_a_queue_shows_defaults_for_what_it_leaves_open() -> None:
    _, rows = queue_table([QueueView(name="ml", spec={"retryPolicies": ["infra", "net"]})])
    assert rows == [("ml", "default", "1", "no", "unlimited", "infra,net")]


def test_an_entry_without_a_table_of_its_own_shows_the_fields_of_its_manifest() -> None:
    retry = {"max_retries": 2, "max_retry_delay": None, "eligible_causes": ["unknown", "oom_killed"]}
    views = [
        EntryView(name="default", spec={"active": True}),
        EntryView(name="lab", submitted_by="ann", spec={"active": False, "sessionRetry": retry}),
    ]
    assert entry_table(views) == (
        ("NAME", "ACTIVE", "SESSION RETRY", "SUBMITTED BY"),
        [
            ("default", "yes", "", ""),
            ("lab", "no", "max_retries=2,max_retry_delay=null,eligible_causes=unknown,oom_killed", "ann"),
        ],
    )


def test_off_a_terminal_a_table_is_aligned_and_never_cut() -> None:
    stream = io.StringIO()
    Output(stream).table(("A", "B"), [("x" * 300, "Failed"), ("y", "")])
    assert stream.getvalue() == f"{'A':<300}  B\n{'x' * 300}  Failed\ny\n"


def test_off_a_terminal_there_are_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    stream = io.StringIO()
    output = Output(stream)
    output.heading("Attempts")
    output.paragraph("Attempt 1 failed.")
    output.table(("STATE",), [("Failed",)])
    assert "\x1b" not in stream.getvalue()


def test_on_a_terminal_a_state_has_its_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    Output(stream).table(("STATE",), [("Failed",)])
    assert "\x1b[31mFailed" in stream.getvalue()


def test_markup_in_what_people_wrote_is_printed_as_it_is() -> None:
    stream = Terminal()
    Output(stream).table(("REASON",), [("[red]not markup[/red]",)])
    assert "[red]not markup[/red]" in stream.getvalue()


def test_an_empty_table_still_names_its_columns() -> None:
    assert plain_table(("ID", "NAME"), []) == ["ID  NAME"]


def test_lines_within_a_cell_become_one() -> None:
    assert plain_table(("MESSAGE",), [("two\nlines",)])[1] == "two lines"


ML = {"name": "ml", "submitted_by": "", "spec": {}, "warnings": []}


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("name", "ml\n"),
        ("yaml", "items:\n- name: ml\n  submitted_by: ''\n  spec: {}\n  warnings: []\n"),
        (
            "json",
            json.dumps({"items": [ML]}, indent=2) + "\n",
        ),
    ],
)
def test_a_list_can_be_printed_for_programs(form: str, text: str) -> None:
    stream = io.StringIO()
    queues = [QueueView(name="ml", spec={})]
    print_things(Output(stream), queues, form, table=queue_table, name=lambda queue: queue.name)
    assert stream.getvalue() == text


def test_a_single_thing_is_not_wrapped_in_a_list() -> None:
    stream = io.StringIO()
    queue = QueueView(name="ml", spec={})
    print_thing(Output(stream), queue, "json", table=queue_table, name=lambda one: one.name)
    assert json.loads(stream.getvalue()) == ML


def test_on_a_narrow_terminal_only_free_text_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    Output(stream).table(("ID", "REASON"), [("x" * 60, "one two three four five six seven eight")])
    assert "x" * 60 in stream.getvalue()
    assert "…" not in stream.getvalue()
    assert "one two three four five " in stream.getvalue()


NASTY = "\x1b[2J\x9b31m\x07ü\r \u202egnp.exe\u202c \u2066x\u2069\u200f \u2028"
SHOWN = r"\x1b[2J\x9b31m\x07ü\x0d \u202egnp.exe\u202c \u2066x\u2069\u200f \u2028"
STEERING = set("\x1b\x9b\x07\r\u202e\u202c\u2066\u2069\u200f\u2028")


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
@pytest.mark.parametrize("way", ["text", "heading", "paragraph", "table", "facts"])
def test_what_a_program_said_cannot_steer_a_terminal(stream: type[io.StringIO], way: str) -> None:
    written = stream()
    output = Output(written)
    ways = {
        "table": lambda: output.table(["SAID"], [[NASTY]]),
        "facts": lambda: output.facts([("said", NASTY)]),
        "heading": lambda: output.heading(NASTY),
        "paragraph": lambda: output.paragraph(NASTY),
    }
    ways.get(way, lambda: output.text(NASTY))()
    said = written.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert SHOWN in said
    assert not set(said) & STEERING


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_documents_write_control_characters_out_and_mean_the_same(form: str) -> None:
    written = io.StringIO()
    document = {"said": NASTY, "turned only": "a\u202eb", NASTY: ["# \u2067 'not' a comment: x", "plain"]}
    Output(written).document(document, form)
    assert not set(written.getvalue()) & STEERING
    if form == "json":
        assert json.loads(written.getvalue()) == document
    else:
        assert yaml.safe_load(written.getvalue()) == document
        assert "- plain" in written.getvalue()


def awaiting(job_id: str, *after: str, **fields: str) -> JobSummary:
    """Make a job that waits for others by their ids, each perhaps with a condition."""
    named = [(one.partition(":")[0], one.partition(":")[2] or "ok") for one in after]
    waits = [{"kind": "job", "id": name, "name": name, "condition": condition} for name, condition in named]
    facts = {"id": job_id, "name": job_id, "queue": "q", "state": "Waiting"}
    facts["submitted_at"] = f"2026-01-01T00:00:0{job_id[-1]}Z"
    amount = {"cpu": "1", "memory": "0", "gpu": 0}
    return JobSummary.model_validate({**facts, "resources": amount, "depends_on": waits, **fields})


def test_a_tree_has_each_job_once_below_the_last_thing_it_waits_for() -> None:
    jobs = [
        awaiting("d4", "c3", "b2:failed"),
        awaiting("c3", "a1"),
        awaiting("b2", "a1:ended"),
        awaiting("a1", "gone0"),
    ]
    columns, rows = tree_table(jobs)
    assert columns == ("NAME", "STATE", "AFTER", "REASON")
    assert [(row[0], row[2]) for row in rows] == [
        ("a1", "gone0"),
        ("├─ b2", "a1:ended"),
        ("│  └─ d4", "c3, b2:failed"),
        ("└─ c3", "a1"),
    ]


def test_a_chain_of_any_length_is_drawn_and_indented_as_far_as_it_can_be_read() -> None:
    chain = [awaiting("j0")]
    late = "2026-01-02T00:00:00Z"
    chain += [awaiting(f"j{number}", f"j{number - 1}", submitted_at=late) for number in range(1, 3000)]
    rows = tree_table(chain)[1]
    assert len(rows) == 3000
    assert max(len(row[0]) for row in rows) < 140
