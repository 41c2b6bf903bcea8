"""Lists: one line a row on a terminal, everything for programs, and names that mean one job."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from holdfast.cli.printing import print_things
from holdfast.cli.render.custom_columns import custom_table, read_columns
from holdfast.cli.render.flat import columns_of, csv_lines
from holdfast.cli.render.listing import GAP, fitted
from holdfast.cli.render.output import Output
from holdfast.cli.render.references import references
from holdfast.cli.render.words import clock_time, until
from holdfast.domain.units import parse_duration
from holdfast.errors import InvalidRequest
from holdfast.wire.arrays import ArrayView
from holdfast.wire.catalogue import NodeView
from holdfast.wire.events import EventView
from holdfast.wire.jobs import AttemptView, JobOutcome, JobView
from holdfast.wire.jobsets import JobSetSummary

if TYPE_CHECKING:
    from collections.abc import Sequence

AT = "2026-01-01T00:00:00.250Z"
RESOURCES = {"cpu": "1", "memory": "0", "gpu": 0}
COLUMNS = ("NAME", "STATE", "REASON")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def outcome(**facts: object) -> JobOutcome:
    header = {"id": "01", "name": "train", "queue": "ml", "state": "Failed", "resources": RESOURCES, "labels": {}}
    return JobOutcome.model_validate({**header, "submitted_at": AT, **facts})


def lines_on(
    width: int, rows: Sequence[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, *, whole: bool = False
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    Output(stream).listing(COLUMNS, whole=whole).head(rows)
    return stream.getvalue().splitlines()


ROWS = [("a" * 30, "Running", "one " * 30), ("b", "Failed", "two\nlines"), ("中" * 20, "Failed", "中" * 40)]


@pytest.mark.parametrize("width", [20, 40, 80, 81, 200])
def test_on_a_terminal_a_row_is_one_line_however_narrow_it_is(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_on(width, ROWS, monkeypatch)
    assert len(lines) == len(ROWS) + 1
    assert max(map(cell_len, lines)) <= width


def test_free_text_is_cut_before_names_are(monkeypatch: pytest.MonkeyPatch) -> None:
    _, first, second, _ = lines_on(80, ROWS, monkeypatch)
    assert first.startswith("a" * 30)
    assert first.endswith("…")
    assert second.split() == ["b", "Failed", "two", "lines"]


def test_nothing_is_cut_where_it_is_wanted_whole_or_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "one " * 29 in lines_on(40, ROWS, monkeypatch, whole=True)[1]
    stream = io.StringIO()
    Output(stream).listing(COLUMNS).head(ROWS)
    assert "one " * 29 in stream.getvalue().splitlines()[1]


def test_rows_that_come_later_stand_below_the_earlier_ones() -> None:
    stream = io.StringIO()
    listing = Output(stream).listing(COLUMNS)
    listing.head([("train", "Running", "")])
    listing.rows([("x", "Failed", "y")])
    assert stream.getvalue().splitlines()[-1] == "x      Failed   y"


@given(st.lists(st.integers(0, 300), min_size=1, max_size=9), st.integers(1, 250))
def test_columns_fit_whenever_they_can_and_none_grows(widths: list[int], room: int) -> None:
    columns = [f"C{place}" for place in range(len(widths))]
    found = fitted(columns, widths, room)
    gaps = len(GAP) * (len(widths) - 1)
    assert all(new <= old for new, old in zip(found, widths, strict=True))
    assert sum(found) + gaps <= max(room, gaps + len(widths)) or sum(widths) == sum(found)
    if sum(widths) + gaps <= room:
        assert found == widths


@pytest.mark.parametrize(
    ("jobs", "called"),
    [
        ([("01aaaaaa1", "x"), ("01aaaaaa2", "y")], ["x", "y"]),
        ([("01aaaaaa1", "x"), ("01bbbbbb2", "x"), ("01ccccccc", "y")], ["x@01aaaa", "x@01bbbb", "y"]),
        ([("01aaaaaa1", "x"), ("01aaaaaa2", "x"), ("01b", "x")], ["x@01aaaaaa1", "x@01aaaaaa2", "x@01b"]),
        ([("01aaaaaa1", "x"), ("01aaaaaa1", "x")], ["x"]),
    ],
)
def test_jobs_that_share_a_name_are_called_by_as_much_of_their_ids_as_tells_them_apart(
    jobs: list[tuple[str, str]], called: list[str]
) -> None:
    assert list(references(jobs).values()) == called


@given(st.sets(st.text("01ab", min_size=8, max_size=8), min_size=1))
def test_a_job_is_never_called_what_another_is(ids: set[str]) -> None:
    called = references((job_id, "same") for job_id in ids)
    prefixes = [name.partition("@")[2] for name in called.values()]
    assert all(sum(job_id.startswith(prefix) for job_id in ids) == 1 for prefix in prefixes if len(ids) > 1)


def test_csv_is_quoted_as_rfc_4180_says_and_read_back_the_same() -> None:
    hostile = 'a, "quoted"\r\nreason;=1+1'
    lines = csv_lines([outcome(reason=hostile, exit_code=0, labels={"team": "nlp", "a": "b"}).model_dump()], JobOutcome)
    text = "".join(lines)
    assert text.count("\r\n") >= 2
    [row] = csv.DictReader(io.StringIO(text, newline=""))
    assert row["reason"] == hostile
    assert [row[name] for name in ("labels", "exit_code", "signal", "resources_cpu", "submitted_at")] == [
        "a=b,team=nlp", "0", "", "1", AT,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "some"),
    [
        (JobOutcome, {"id", "labels", "exit_code", "node", "cause", "submitted_at", "resources_memory", "array_index"}),
        (ArrayView, {"name", "eta_s", "labels", "failed"}),
        (JobSetSummary, {"name", "terminal", "restarts", "created_at"}),
        (NodeView, {"name", "used_cpu", "capacity_gpu", "labels", "capabilities"}),
        (AttemptView, {"number", "conditions", "decision_action", "decision_delay_s", "resources_cpu"}),
        (EventView, {"id", "type", "subject", "data"}),
    ],
)
def test_csv_has_a_column_for_each_plain_field_and_for_nothing_else(model: type[Any], some: set[str]) -> None:
    names = [name for name, _ in columns_of(model)]
    assert some <= set(names)
    assert len(names) == len(set(names))
    assert not {"decision", "resources", "capacity", "attempts", "containers", "decision_considered"} & set(names)


def test_csv_of_nothing_still_has_its_header() -> None:
    stream = io.StringIO(newline="")
    print_things(Output(stream), [], "csv", table=lambda _: ((), ()), name=str, model=NodeView)
    assert stream.getvalue().startswith("name,executor,")
    assert stream.getvalue().count("\r\n") == 1


THING: dict[str, Any] = {
    "name": "train",
    "exit_code": 0,
    "node": None,
    "labels": {"team": "nlp", "a.b/c": "x"},
    "spec": {"command": ["python", "train.py"]},
    "attempts": [{"number": 1, "node": "n1"}, {"number": 2, "node": None}],
}


@pytest.mark.parametrize(
    ("path", "cell"),
    [
        (".name", "train"),
        ("name", "train"),
        ("{.name}", "train"),
        ("$.name", "train"),
        (".exit_code", "0"),
        (".node", "<none>"),
        (".nowhere", "<none>"),
        (".name.deeper", "<none>"),
        (".labels.team", "nlp"),
        (".labels['a.b/c']", "x"),
        ('.labels["a.b/c"]', "x"),
        (r".labels.a\.b/c", "x"),
        (".labels", "a.b/c=x,team=nlp"),
        (".labels.*", "nlp,x"),
        (".labels[*]", "nlp,x"),
        (".spec.command", "python,train.py"),
        (".spec.command[-1]", "train.py"),
        (".spec.command[7]", "<none>"),
        (".attempts[0].node", "n1"),
        (".attempts[*].number", "1,2"),
        (".attempts[*].node", "n1"),
        (".attempts[0]", '{"number": 1, "node": "n1"}'),
    ],
)
def test_a_custom_column_is_what_is_at_its_path(path: str, cell: str) -> None:
    columns = read_columns(f"custom-columns=A:{path},B C:.name")
    assert custom_table(columns, [THING]) == (("A", "B C"), [(cell, "train")])


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ("", 1),
        (",", 1),
        ("A", 1),
        (":.name", 1),
        ("A:", 1),
        ("A:.", 1),
        ("A:.a[", 1),
        ("A:.a..b", 1),
        ("A:{.a", 1),
        ("A,B", 2),
    ],
)
def test_what_is_no_column_is_refused_all_at_once(spec: str, count: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_columns(f"custom-columns={spec}")
    assert len(refused.value.problems) == count
    assert all(problem.hint for problem in refused.value.problems)


def test_a_column_of_a_field_that_nothing_has_is_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_columns("custom-columns=A:.stat", [*JobView.model_fields])
    assert refused.value.problems[0].hint == "did you mean state?"


def test_what_is_due_is_due_in_a_while_and_what_was_today_has_a_time() -> None:
    assert until("2026-01-01T00:00:09Z", 1767225600.0) == "9s"
    assert until("2026-01-01T00:00:09Z", 1767225600.0 + parse_duration("1h")) == "0s"
    assert parse_duration("1w") == parse_duration("7d") == parse_duration("6d24h")
    noon = 1767225600.0 + parse_duration("12h")
    assert clock_time("2026-01-01T12:00:05Z", noon)[2] == ":"
    assert clock_time("2025-12-01T12:00:05Z", noon) == "Dec 01"
