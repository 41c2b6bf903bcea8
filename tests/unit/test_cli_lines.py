"""Command lines: what they are parsed into, what is said of wrong ones, and what starting costs."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pytest

from holdfast import __version__
from holdfast.cli.commands import commands
from holdfast.cli.context import Cli
from holdfast.cli.edits import with_limits
from holdfast.cli.flags import Flags
from holdfast.cli.main import parse, run_line
from holdfast.cli.nouns import Noun, read_noun
from holdfast.errors import InvalidRequest

if TYPE_CHECKING:
    from holdfast.cli.command import Command

HEAVY = {"fastapi", "sqlalchemy", "pydantic", "httpx", "yaml", "rich", "uvicorn", "alembic"}
SPELLINGS = [
    "retrypolicy",
    "retry-policy",
    "retryPolicy",
    "retrypolicies",
    "retry-policies",
    "RetryPolicy",
    "retry_policy",
]


def said(*words: str) -> tuple[int, str]:
    stderr = io.StringIO()
    code = run_line(words, Cli(stdout=io.StringIO(), stderr=stderr))
    return code, stderr.getvalue()


@pytest.mark.parametrize(
    "line",
    [
        "submit -f jobs.yaml -f - --wait --timeout 1h",
        "apply -f policies.yaml --dry-run",
        "get jobs --state failed,Held --queue ml --label team=nlp --limit 5 -o json",
        "get job 01h -o yaml",
        "get settings",
        "describe train",
        "describe queue ml",
        "attempts train -o json",
        "logs train --attempt 1 --rank 0 -f",
        "why train --attempt 2 -o json",
        "wait a b --for Running --timeout 90s",
        "cancel a b --reason wrong",
        "hold a",
        "release a",
        "up --host 127.0.0.1 --port 0 --data /tmp/x",
        "create queue ml --retry-policy infra,ml-training --weight 2 --dry-run",
        "create -f policy.yaml",
        "update queue ml --no-paused",
        "update settings --global-max-retries 0",
        "update settings --retry-share 0.2",
        "update queue ml --handler-limit StartAttempts.timeout=5m --handler-limit StartAttempts.maxRetries=none",
        "delete retrypolicy infra net",
        "version --client",
    ],
)
def test_the_documented_lines_parse(line: str) -> None:
    parsed = parse(line.split())
    assert parsed is not None
    assert parsed[0].name == line.split(maxsplit=1)[0]


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("get job/a job/b", "get job a b"),
        ("get queues/ml -o json", "get queues ml -o json"),
        ("get jobs --queue queue/ml --jobset jobset/train", "get jobs --queue ml --jobset train"),
        ("delete --no-wait jobset/a b", "delete --no-wait jobset a b"),
        ("suspend jobset/train", "suspend jobset train"),
        ("restart replicatedjob/train/workers", "restart replicatedjob train/workers"),
        ("restart job/train-workers-0", "restart job train-workers-0"),
        ("describe retrypolicy/infra", "describe retrypolicy infra"),
        ("describe job/a", "describe job a"),
        ("wait jobset/a jobset/b", "wait jobset a b"),
        ("why js/train", "why js train"),
        ("cancel jobs a b", "cancel job/a j/b"),
        ("hold array sweep", "hold arrays/sweep"),
        ("retry jobs a b", "retry a b"),
        ("logs array/a --index 7", "logs a --index 7"),
        ("logs array a --index 7", "logs a --index 7"),
        ("attempts array/a --index 7", "attempts a --index 7"),
        ("rerun array/sweep --failed", "rerun sweep --failed"),
        ("attempts job/a", "attempts a"),
        ("logs job/a -f", "logs a -f"),
        ("events --job job/a", "events --job a"),
        ("update queue/ml --weight 2", "update queue ml --weight 2"),
        ("create queue/a queue/b", "create queue a b"),
        ("get job a/b", "get job a/b"),
    ],
)
def test_what_is_printed_as_a_name_is_taken_as_one(line: str, same: str) -> None:
    found, meant = parse(line.split()), parse(same.split())
    assert found is not None
    assert found == meant


def test_what_may_be_of_several_kinds_keeps_the_kind_that_was_said() -> None:
    parsed = parse(["cancel", "arrays/a", "b"]), parse(["retry", "job/a", "b"])
    assert [found[1].jobs for found in parsed if found is not None] == [["array/a", "b"], ["a", "b"]]


def test_a_name_that_is_a_kind_is_a_name_where_it_stands_alone() -> None:
    parsed = parse(["cancel", "job"]), parse(["cancel", "j", "k"])
    assert [found[1].jobs for found in parsed if found is not None] == [["job"], ["j", "k"]]


@pytest.mark.parametrize("line", ["get job/a queue/b", "cancel jobset/a", "wait job/a jobset/b"])
def test_names_of_other_kinds_than_is_meant_are_refused(line: str) -> None:
    code, text = said(*line.split())
    assert code == 2
    assert "is of another kind" in text


@pytest.mark.parametrize(
    ("line", "says", "hint"),
    [
        (
            "cancel jobset/a",
            "`cancel` is for jobs and arrays.",
            "holdfast delete jobset a, or to keep it: holdfast suspend",
        ),
        (
            "cancel jobset a",
            "`cancel` is for jobs and arrays.",
            "holdfast delete jobset a, or to keep it: holdfast suspend",
        ),
        ("attempts js/a", "`attempts` is for jobs and arrays.", "holdfast describe jobset a lists its jobs, then:"),
        ("retry array/a", "`retry` is for jobs.", "holdfast rerun a\n"),
        ("hold jobset/a", "`hold` is for jobs and arrays.", "holdfast suspend jobset a\n"),
        ("release jobset/a", "`release` is for jobs and arrays.", "holdfast resume jobset a\n"),
        ("retry jobset/a", "`retry` is for jobs.", "holdfast restart jobset a\n"),
        ("rerun jobset/a --failed", "`rerun` is for arrays.", "holdfast restart jobset a\n"),
        ("rerun job/a --failed", "`rerun` is for arrays.", "holdfast retry a\n"),
    ],
)
def test_what_a_command_is_not_for_is_refused_with_what_does_the_same_for_it(line: str, says: str, hint: str) -> None:
    code, text = said(*line.split())
    assert code == 2
    assert text.startswith(f"error: {says}\n")
    assert f"; hint: {hint}" in text


@pytest.mark.parametrize("line", ["cancel queue/a", "cancel a --queue jobset/b"])
def test_where_nothing_does_the_same_no_hint_is_made_up(line: str) -> None:
    code, text = said(*line.split())
    assert (code, "hint" in text) == (2, False)


@pytest.mark.parametrize("line", ["delete queue", "suspend jobset", "restart jobset"])
def test_a_kind_alone_names_nothing(line: str) -> None:
    code, text = said(*line.split())
    assert code == 2
    assert "NAME" in text


def test_a_list_that_was_not_given_is_empty() -> None:
    parsed = parse(["get", "jobs"])
    assert parsed is not None
    assert (parsed[1].state, parsed[1].label, parsed[1].names) == ([], [], [])


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_every_command_helps(command: Command[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_line([command.name, "--help"], Cli()) == 0
    assert command.summary in capsys.readouterr().out.replace("\n  ", " ")


@pytest.mark.parametrize("line", ["-h", "run -h", "get -h"])
def test_help_has_a_short_form(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_line(line.split(), Cli()) == 0
    short = capsys.readouterr().out
    assert run_line(line.replace("-h", "--help").split(), Cli()) == 0
    assert capsys.readouterr().out == short != ""


def test_the_version_is_an_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_line(["--version"], Cli()) == 0
    assert capsys.readouterr().out == f"holdfast {__version__}\n"


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_every_option_says_what_it_does(command: Command[Any]) -> None:
    hints = get_type_hints(command.options, include_extras=True)
    helps = {field.name: get_args(hints[field.name])[1].help for field in fields(command.options)}
    assert [name for name, text in helps.items() if not text or not text.endswith((".", "standard input."))] == []


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_kind_may_be_spelt_in_many_ways(spelling: str) -> None:
    assert read_noun(spelling) == Noun.RETRY_POLICY


def test_an_unknown_kind_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_noun("widgets")
    assert "jobs" in caught.value.problems[0].allowed


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("frobnicate", "there is no command 'frobnicate'\n  hint: holdfast --help"),
        ("gte jobs", "there is no command 'gte'\n  hint: did you mean get?"),
        ("run", "Missing argument"),
        ("get jobs --sate Failed", "--state"),
        ("get jobs -o xml", "--output: 'xml' is unknown; allowed: table, wide, json, yaml, csv, name"),
        (
            "get jobs -o custom-columns=",
            "--output: custom-columns has no columns; hint: write custom-columns=NAME:.name",
        ),
        ("get jobs -o custom-columns=A", "--output: 'A' is not NAME:.path"),
        ("get jobs -o custom-columns=A:.b[x]", "--output: '.b[x]' is not a path"),
        ("get jobs -o custom-columns=A:.stat,B:.name", "there is no field 'stat'; allowed: id, name, queue, state"),
        ("get nodes -o custom-columns=A:.stat", "there is no field 'stat'; allowed: name, executor, capacity"),
        ("attempts a -o custom-columns=A:.stat", "did you mean state?"),
        ("get jobs --state Lost", "--state: 'Lost' is unknown; allowed: Queued, Running, BackOff"),
        ("get queues --state Held", "--state: only filters lists of jobs"),
        ("get widgets", "KIND: 'widgets' is unknown; allowed: jobs"),
        ("why train --attempt 0", "--attempt: '0' is out of range; allowed: 1 or more"),
        ("wait a --for ended --timeout soon", "--timeout: 'soon' is not a duration"),
        ("submit", "--file: is required"),
        ("submit -f /nowhere/jobs.yaml", "/nowhere/jobs.yaml: No such file"),
        ("create", "KIND: give either a kind with names, or files"),
        ("create queue", "NAME: is required; hint: holdfast create queue NAME"),
        ("create node x", "KIND: 'node' cannot be used with this command; allowed: queues, domains, retrypolicies"),
        ("create queue ml --retry-limit 3", "--retry-limit: does not apply to queues"),
        ("run --memory 2 -- true", "--memory: '2' is 2 bytes; hint: did you mean 2Gi?"),
        ("run --memory 0.5 -- true", "--memory: '0.5' is 0 bytes; hint: did you mean 0.5Gi?"),
        ("update settings", "no flag says what to change"),
        ("update settings --handler-limit StartAttempts=1", "'StartAttempts=1' is not HANDLER.FIELD=VALUE"),
        ("update settings --retry-share 1.5", "--retry-share: '1.5' is out of range; allowed: 0 to 1"),
        ("update settings --global-max-retries many", "--global-max-retries: 'many' is not a whole number"),
        ("up --port 99999", "--port: '99999' is out of range; allowed: 0 to 65535"),
    ],
)
def test_a_wrong_line_says_what_is_wrong_and_exits_with_2(line: str, says: str) -> None:
    code, text = said(*line.split())
    assert says in text
    assert code == 2


def test_wrong_flags_are_reported_together() -> None:
    _, text = said("get", "jobs", "-o", "xml", "--limit", "x", "--state", "Lost", "--label", "a")
    assert [flag in text for flag in ("--output", "--limit", "--state", "--label")] == [True] * 4


def test_starting_imports_nothing_heavy() -> None:
    program = "import sys, holdfast.cli.main as main; main.parse(['--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert HEAVY & {name.split(".")[0] for name in loaded.split()} == set()


def test_a_limit_of_a_handler_changes_alone_is_lifted_and_goes_back_to_its_default() -> None:
    before = {"StartAttempts": {"timeout": "5m", "maxRetries": 3}, "PrepareAttempts": {"timeout": 60.0}}
    edits = ["StartAttempts.maxRetries=none", "PrepareAttempts.timeout=default", "ScheduleAttempts.maxRetries=9"]
    assert with_limits(before, edits, Flags()) == {
        "StartAttempts": {"timeout": "5m", "maxRetries": None},
        "ScheduleAttempts": {"maxRetries": 9},
    }
