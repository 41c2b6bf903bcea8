"""Command lines as ``armadactl`` reads them, and what it says of wrong ones."""

from __future__ import annotations

import io

import pytest

from holdfast.cli.armada.failure import Failed
from holdfast.cli.armada.line import help_of, parse
from holdfast.cli.armada.main import run
from holdfast.cli.armada.verbs import ROOT
from holdfast.cli.context import Cli

NAME = "armadactl"


@pytest.mark.parametrize(
    ("line", "path", "words", "flags"),
    [
        ("create queue ml", "create queue", ["ml"], {"priority-factor": 1.0, "cordon": False, "owners": ()}),
        (
            "create queue ml --priority-factor 2.5 --cordon",
            "create queue",
            ["ml"],
            {"priority-factor": 2.5, "cordon": True},
        ),
        ("create queue --priority-factor=3 ml", "create queue", ["ml"], {"priority-factor": 3.0}),
        ("create queue ml --owners a,b --owners c", "create queue", ["ml"], {"owners": ("a", "b", "c")}),
        ("create queue ml -l a=b,c=d", "create queue", ["ml"], {"labels": ("a=b", "c=d")}),
        ("create queue ml -la=b", "create queue", ["ml"], {"labels": ("a=b",)}),
        ("create queue ml --retry-policy a --retry-policies b", "create queue", ["ml"], {"retry-policies": ("b",)}),
        ("create -f file.yaml", "create", [], {"file": "file.yaml", "dry-run": False}),
        ("create -ffile.yaml --dry-run", "create", [], {"file": "file.yaml", "dry-run": True}),
        ("create retry-policy -f p.yaml", "create retry-policy", [], {"file": "p.yaml"}),
        ("get retrypolicy p", "get retry-policy", ["p"], {}),
        ("cordon queue a b", "cordon queues", ["a", "b"], {"match-labels": ()}),
        ("--armadaUrl host:1 get queues", "get queues", [], {"armadaUrl": "host:1"}),
        ("get --armadaUrl=host:1 queues -c lab", "get queues", [], {"armadaUrl": "host:1", "context": "lab"}),
        (
            "cancel queue q -s queued -a",
            "cancel queues",
            ["q"],
            {"job-states": ("queued",), "all-priority-classes": True},
        ),
        ("get scheduling-report -vvv", "get scheduling-report", [], {"verbose": 3}),
        ("reprioritize job q s j -- -5", "reprioritize job", ["q", "s", "j", "-5"], {}),
        ("get queues --inverse=false", "get queues", [], {"inverse": False}),
    ],
)
def test_a_line_is_read_as_cobra_reads_it(line: str, path: str, words: list[str], flags: dict[str, object]) -> None:
    parsed = parse(line.split(), ROOT, NAME)
    assert (parsed.path, list(parsed.words)) == (f"{NAME} {path}", words)
    assert {name: parsed.flags[name] for name in flags} == flags


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("frob", 'unknown command "frob" for "armadactl"'),
        ("create", 'required flag(s) "file" not set'),
        ("create queue", "accepts 1 arg(s), received 0"),
        ("create queue a b", "accepts 1 arg(s), received 2"),
        ("get retry-policies x", 'unknown command "x" for "armadactl get retry-policies"'),
        ("get queues --frob", "unknown flag: --frob"),
        ("get queues -x", "unknown shorthand flag: 'x' in -x"),
        ("create -f", "flag needs an argument: -f, --file"),
        (
            "create queue a --priority-factor much",
            'invalid argument "much" for "--priority-factor" flag: strconv.ParseFloat: parsing "much": invalid syntax',
        ),
        ("cancel queues q", 'required flag(s) "job-states", "priority-classes" not set'),
        ("cancel queues q -a", 'required flag(s) "job-states" not set'),
        ("preempt node n -e x", 'required flag(s) "priority-classes" not set'),
        ("cancel node n", 'required flag(s) "executor", "priority-classes" not set'),
        ("preempt node n -a", 'required flag(s) "executor" not set'),
        ("cancel node -e x -a", "accepts 1 arg(s), received 0"),
    ],
)
def test_a_wrong_line_is_refused_in_cobra_s_words(line: str, told: str) -> None:
    with pytest.raises(Failed) as caught:
        parse(line.split(), ROOT, NAME)
    assert caught.value.message == told
    assert caught.value.more[0].endswith("--help' for usage.")


@pytest.mark.parametrize("line", ["", "get", "cancel --help", "create queue -h", "get nonsense"])
def test_a_group_shows_what_can_follow_it(line: str) -> None:
    out = io.StringIO()
    assert run(line.split(), Cli(stdout=out), NAME) == 0
    assert "Usage:\n  armadactl" in out.getvalue()


@pytest.mark.parametrize("line", ["get queue-report q -v", "cordon executor e reason"])
def test_what_is_not_here_says_so_and_what_there_is_instead(line: str) -> None:
    said = io.StringIO()
    assert run(line.split(), Cli(stderr=said), NAME) == 1
    assert "is not here: this is Holdfast\n  instead: holdfast " in said.getvalue()


def test_every_verb_and_flag_that_works_says_what_it_does() -> None:
    left, seen = [ROOT], 0
    while left:
        verb = left.pop()
        left += verb.verbs
        seen += 1
        assert verb.summary
        assert "(not here)" in verb.summary or all(flag.help.endswith(".") for flag in verb.flags), verb.name
        assert verb.name in help_of(parse([], ROOT, NAME), ROOT) or verb not in ROOT.verbs
    assert seen > 40


def test_the_script_says_whose_it_is() -> None:
    out = io.StringIO()
    assert run(["--version"], Cli(stdout=out), NAME) == 0
    assert out.getvalue().startswith("armadactl of holdfast ")
