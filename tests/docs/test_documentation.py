"""The documentation is true: generated parts are fresh, everything that has a name is named, manifests can be read."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from holdfast.app.settings import Settings
from holdfast.cli import exit_codes
from holdfast.cli.commands import commands
from holdfast.dialects.documents import read_documents
from holdfast.dialects.native.catalogue import read_settings
from holdfast.domain import lifecycle
from holdfast.domain.failure import Cause, EndedBy, FailureCondition
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import AttemptStatus, Outcome, RunStatus
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, AntiAffinity, ExitCodeOperator, JitterMode, SetAction
from holdfast.domain.workloads.jobset.model import DependencyStatus, RestartStrategy
from holdfast.domain.workloads.kubejob.job_status import END_PODS, PODS
from holdfast.domain.workloads.kubejob.model import PodAction
from holdfast.errors import InvalidManifest, all_errors
from holdfast.service.manifests.armada import read_configuration
from holdfast.wire.jobsets import JobSetSummary
from holdfast.wire.problems import ProblemDetails, details_of, read_problem
from tests.reading import read_all, read_manifests
from tools.docs import pages
from tools.docs.blocks import BLOCKS
from tools.docs.commands import SELECTION, options
from tools.docs.http import application
from tools.docs.source import member_docs

if TYPE_CHECKING:
    from enum import StrEnum

    from _pytest.mark import ParameterSet

    from holdfast.cli.command import Command
    from holdfast.errors import HoldfastError

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TEXTS = {path: path.read_text() for path in [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SETTINGS_KEYS = {
    "globalMaxRetries",
    "defaultBackoff",
    "defaultPolicyName",
    "handlerLimits",
    "retryShare",
    "builtinPolicy",
    "fluster",
    "sessionRetryDefault",
    "sessionRetries",
}


def page(name: str) -> str:
    return TEXTS[DOCS / name]


def blocks(language: str) -> list[ParameterSet]:
    """List every fenced block of a language, by page and place."""
    return [
        pytest.param(match[2], id=f"{path.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 1}")
        for path, text in TEXTS.items()
        for match in FENCE.finditer(text)
        if match[1] == language
    ]


def test_no_generated_part_is_stale() -> None:
    assert pages.stale() == [], "run ./dev docs"


def test_every_generated_part_is_shown_somewhere() -> None:
    assert pages.used() == set(BLOCKS)


@pytest.mark.parametrize("error", all_errors()[1:], ids=lambda error: error.code)
def test_every_error_code_is_documented(error: type[HoldfastError]) -> None:
    assert f"`{error.code}`" in page("rest.md")


def test_the_problem_of_the_documentation_is_what_a_server_answers() -> None:
    (text,) = re.findall(r"```json\n(\{\n  \"type\".*?)```", page("rest.md"), flags=re.DOTALL)
    shown = ProblemDetails.model_validate_json(text)
    problems = [read_problem(entry) for entry in shown.errors]
    assert shown == details_of(InvalidManifest(problems=problems))


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_is_documented(name: str) -> None:
    assert f"`HOLDFAST_{name.upper()}`" in page("operations.md")
    assert member_docs(Settings)[name], "say below the field what it means"


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_every_command_and_option_is_documented(command: Command[Any]) -> None:
    reference = page("cli.md").partition(f"### holdfast {command.name}\n")[2]
    section = reference.partition("\n### ")[0]
    assert section
    shared = section.partition("- [Shared](#shared-options): ")[2].partition("\n")[0]
    named = [name for name in shared.replace("selection", ", ".join(SELECTION)).split(", ") if name]
    unnamed = [spelling for spelling, _ in options(command) if f"- {spelling}: " not in section]
    assert sorted(f"`{re.split('[ ,`]', spelling)[1]}`" for spelling in unnamed) == sorted(named)


def test_a_shared_option_means_for_each_command_that_names_it_what_the_list_says() -> None:
    meanings = dict(re.findall(r"^- (`.+?`): (.+)$", page("cli.md").partition("\n## Run work")[0], re.MULTILINE))
    assert len(meanings) > 20
    for command in commands():
        section = page("cli.md").partition(f"### holdfast {command.name}\n")[2].partition("\n### ")[0]
        shared = {spelling: meaning for spelling, meaning in options(command) if f"- {spelling}: " not in section}
        assert {spelling: meanings.get(spelling) for spelling in shared} == shared


@pytest.mark.parametrize("code", sorted(exit_codes.MEANINGS))
def test_every_exit_code_is_documented(code: int) -> None:
    assert f"\n- `{code}`: " in page("cli.md")


def test_every_metric_is_documented() -> None:
    registry = CollectorRegistry()
    application(registry)
    assert [family.name for family in registry.collect() if f"`{family.name}" not in page("rest.md")] == []


@pytest.mark.parametrize(
    ("enum", "name"),
    [
        (JobState, "how-it-works.md"),
        (AttemptStatus, "how-it-works.md"),
        (RunStatus, "how-it-works.md"),
        (Outcome, "how-it-works.md"),
        (FailureCondition, "manifests.md"),
        (Cause, "manifests.md"),
        (EndedBy, "manifests.md"),
        (Action, "manifests.md"),
        (DecisionCode, "manifests.md"),
        (JitterMode, "manifests.md"),
        (AntiAffinity, "manifests.md"),
        (ExitCodeOperator, "manifests.md"),
        (SetAction, "jobsets.md"),
        (RestartStrategy, "jobsets.md"),
        (DependencyStatus, "jobsets.md"),
        (PodAction, "jobsets.md"),
    ],
)
def test_every_word_of_the_vocabulary_is_documented(enum: type[StrEnum], name: str) -> None:
    assert [member.value for member in enum if f"`{member.value}`" not in page(name)] == []


def test_every_state_of_a_job_set_is_documented() -> None:
    states = re.findall(r"\b[A-Z][a-z]+", member_docs(JobSetSummary)["state"])
    assert len(states) > 1
    assert [state for state in states if f"\n- `{state}`: " not in page("jobsets.md")] == []


@pytest.mark.parametrize(
    "enum",
    [
        JobState,
        FailureCondition,
        Cause,
        EndedBy,
        Action,
        DecisionCode,
        JitterMode,
        AntiAffinity,
        ExitCodeOperator,
        SetAction,
        RestartStrategy,
        DependencyStatus,
        PodAction,
    ],
)
def test_every_word_of_the_vocabulary_says_what_it_means(enum: type[StrEnum]) -> None:
    docs = member_docs(enum)
    assert [member.name for member in enum if not docs[member.name]] == []


def test_every_handler_promotion_and_transition_is_in_the_lifecycle_page() -> None:
    text = page("how-it-works.md")
    promotions = (*lifecycle.PROMOTIONS, *lifecycle.GANG_PROMOTIONS)
    names = [row.name for row in lifecycle.HANDLERS] + [row.name for row in promotions]
    names += [row.name for row in lifecycle.ATTEMPTS.requests] + [END_PODS.name, *(row.name for row in PODS.promotions)]
    assert [name for name in names if f"`{name}`" not in text] == []
    moves = {
        (source, to.status)
        for row in lifecycle.HANDLERS
        if row is not lifecycle.TERMINATE
        for source in row.targets
        for outcome in Outcome
        if (to := row.transitions.get(outcome)) and to.status and to.status is not source
    } | {(source, row.success) for row in lifecycle.GANG_PROMOTIONS for source in row.targets}
    assert [move for move in moves if f"{move[0]} --> {move[1]}:" not in text] == []


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_manifest_in_the_documentation_can_be_read(text: str) -> None:
    if SETTINGS_KEYS & set(yaml.safe_load(text.partition("\n---")[0])):
        read_settings(yaml.safe_load(text))
    elif {"scheduling", "application"} & set(yaml.safe_load(text)):
        assert read_configuration(text, "armada.yaml").retries
    else:
        assert read_manifests(text)


@pytest.mark.parametrize("text", [param for param in blocks("yaml") if str(param.values[0]).startswith("# examples/")])
def test_a_manifest_shown_under_a_files_name_is_that_files(text: str) -> None:
    """The page's commands run the file; its first line, which says what it shows, is not repeated."""
    name, _, shown = text.removeprefix("# ").partition("\n")
    assert shown == (ROOT / name).read_text().partition("\n")[2]


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "jobsets").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_job_set_is_run_by_a_page(path: Path) -> None:
    assert any(f"-f {path.relative_to(ROOT)}" in text for text in TEXTS.values())


@pytest.mark.parametrize("text", blocks("json"))
def test_every_json_in_the_documentation_is_json(text: str) -> None:
    assert json.loads(text)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=str(path.relative_to(ROOT)))
        for path in sorted((ROOT / "examples").rglob("*"))
        if path.suffix in {".yaml", ".jsonl"}
    ],
)
def test_every_example_can_be_read(path: Path) -> None:
    assert read_all(read_documents(path.read_text(), name=path.name))


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.name) for path in sorted((DOCS / "decisions").glob("0*.md"))]
)
def test_a_decision_record_is_short_and_complete(path: Path) -> None:
    text = path.read_text()
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["Context", "Decision", "Consequences", "Alternatives", "Enforced by"]
    assert text.count("\n") < 60
    assert path.name in page("decisions/index.md")


@pytest.mark.parametrize("name", ["src/holdfast", "tests", "tools"])
def test_nothing_in_the_tree_speaks_of_the_machine_it_was_written_on(name: str) -> None:
    """Paths of one machine and credentials have no place in the code."""
    private = re.compile(r"/root/|BEGIN [A-Z ]*PRIVATE KEY")
    found = [
        str(path) for path in (ROOT / name).rglob("*.py") if path != Path(__file__) and private.search(path.read_text())
    ]
    assert found == []


FILES_NAMED = re.compile(
    r"`((?:domain|ports|controller|cli|api|app|storage|dialects|engines|wire|tests|tools)/[\w/]+\.py)`"
)


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in TEXTS])
def test_every_file_that_a_page_names_exists(path: Path) -> None:
    named = FILES_NAMED.findall(TEXTS[path])
    assert [name for name in named if not any((base / name).exists() for base in (ROOT, ROOT / "src/holdfast"))] == []


def test_each_step_of_a_failures_way_is_a_function_of_the_file_it_names() -> None:
    steps = re.findall(r"`([\w/]+\.py)`: `([\w.]+)`", page("concepts.md"))
    assert len(steps) > 20
    missing = []
    for file, name in steps:
        body = ast.parse((ROOT / "src/holdfast" / file).read_text()).body
        for word in name.split("."):
            found = [each for each in body if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name == word]
            body = found[0].body if found else []
        missing += [] if body else [(file, name)]
    assert missing == []


def test_each_way_of_a_failure_has_twelve_steps() -> None:
    section = page("concepts.md").partition("## Two failures, from file to file")[2].partition("\n## ")[0]
    ways = section.split("\n**")[1:]
    assert [len(re.findall(r"^\d+\. ", way, re.MULTILINE)) for way in ways] == [12, 12]


def test_every_test_that_a_page_names_exists() -> None:
    """A claim that names its proof must not lose it."""
    sources = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    written = {name for text in sources for name in re.findall(r"def (test_\w+)", text)}
    named = {name for text in TEXTS.values() for name in re.findall(r"`(test_\w+)`", text)}
    assert named
    assert named - written == set()


def test_each_line_of_the_threat_model_names_the_test_that_shows_it() -> None:
    tables = re.findall(r"^\|.*\| Shown by \|\n\| ---.*\n((?:\|.*\n)+)", page("threat-model.md"), re.MULTILINE)
    claims = [row for table in tables for row in table.splitlines()]
    assert len(claims) >= 30
    assert [row for row in claims if not re.search(r"`test_\w+`[^|]*\|$", row)] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_every_link_to_a_file_leads_somewhere(name: str) -> None:
    """The site's own links are checked when it is built."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", (ROOT / name).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_each_row_of_the_failure_table_names_tests_there_are() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    rows = text.partition("## Failure modes")[2].partition("\n## ")[0].splitlines()
    named = [name for row in rows for name in re.findall(r"`(test_\w+(?:\.py)?)`", row)]
    files = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    everything = "\n".join(files.values())
    assert len(named) >= 15
    assert [name for name in named if name not in files and f"def {name}(" not in everything] == []
