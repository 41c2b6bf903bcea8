"""Reading text into documents: formats, lines, and everything that is refused."""

from __future__ import annotations

import json
import time

import pytest

from holdfast.dialects.documents import read_documents
from holdfast.dialects.reading import Fields
from holdfast.dialects.scalars import Ambiguous
from holdfast.errors import InvalidManifest, Problem


def problems_of(text: str) -> tuple[Problem, ...]:
    with pytest.raises(InvalidManifest) as caught:
        read_documents(text)
    return caught.value.problems


def test_yaml_documents_keep_their_order_and_the_line_of_every_field() -> None:
    first, second = read_documents("a: 1\nb:\n  - c: x\n---\n# nothing\n---\nd: 2\n")
    assert (first.value, second.value) == ({"a": 1, "b": [{"c": "x"}]}, {"d": 2})
    assert first.line_of("b[0].c") == 3
    assert second.line_of("d") == 7
    assert (first.index, second.index) == (0, 1)


def test_the_line_of_an_unknown_path_is_that_of_its_nearest_parent() -> None:
    (document,) = read_documents("a:\n  b: {c: 1}\n")
    assert document.line_of("a.b.missing[3].deep") == 2
    assert document.line_of("nowhere") == 1


@pytest.mark.parametrize(
    "text",
    ['{"a": 1}\n{"a": 2}\n', '{"a": 1}{"a": 2}', '\n\n{\n"a": 1}\n\n{"a":\n2}\n', '\ufeff{"a": 1}\n{"a": 2}'],
)
def test_json_objects_follow_one_another_however_they_are_laid_out(text: str) -> None:
    assert [document.value for document in read_documents(text)] == [{"a": 1}, {"a": 2}]


def test_json_documents_know_their_line() -> None:
    assert [document.line_of("a") for document in read_documents('{"a": 1}\n\n{"a":\n2}\n{"a": 3}')] == [1, 3, 5]


def test_a_json_document_over_several_lines_knows_the_line_of_every_field() -> None:
    (document,) = read_documents('{\n  "a": {\n    "b": [1,\n      2]}}\n')
    assert document.value == {"a": {"b": [1, 2]}}
    assert (document.line_of("a.b"), document.line_of("a.b[1]")) == (3, 4)


@pytest.mark.parametrize("text", ['{"a": 1e999}', '{"a": -1.5E+400}', "a: 1e999"])
def test_a_number_beyond_all_bounds_is_kept_as_it_was_written(text: str) -> None:
    (read,) = read_documents(text)
    assert isinstance(read.value["a"], Ambiguous)


@pytest.mark.parametrize("number", [1e-5, 1e17, -2.5e-7, 1e5])
def test_a_number_of_json_is_a_number_however_it_is_written(number: float) -> None:
    (read,) = read_documents(json.dumps({"a": number, "b": [number]}))
    assert read.value == {"a": number, "b": [number]}
    (short,) = read_documents('{"a": 1e5}')
    assert short.value == {"a": 100_000.0}


def test_a_number_where_text_is_needed_is_shown_as_it_can_be_quoted() -> None:
    (read,) = read_documents("name: x\ncommand: [env]\nenv: {A: 0.00001}\n")
    problems: list[Problem] = []
    Fields(read.value, "", problems).mapping("env", most=1)
    assert [str(problem) for problem in problems] == [
        'env.A: must be text, not a number 0.00001; hint: quote it: "0.00001"'
    ]


@pytest.mark.parametrize("text", ['{"a": b}', '{"a": 1} # why\n', '{"a": 1}\n---\n{"a": 2}\n---\na: 3\n'])
def test_what_only_begins_like_json_is_read_as_yaml(text: str) -> None:
    assert all(set(document.value) == {"a"} for document in read_documents(text))


def test_a_flow_mapping_that_is_no_json_is_read_as_yaml() -> None:
    assert read_documents("{a: [x, y]}")[0].value == {"a": ["x", "y"]}


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n---\n", "null"])
def test_nothing_is_no_document(text: str) -> None:
    assert read_documents(text) == []


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "duplicate key 'a', first on line 1"),
        ("x:\n  y: 1\n  y: 2\n", 3, "first on line 2"),
        ('{"a": 1, "a": 2}', 1, "duplicate"),
        ('{"a": 1}\n{"b": {"c": 1, "c": 2}}', 2, "duplicate|not YAML"),
        ('{\n"a": 1,\n"b": 2,\n"a": 3\n}', 4, "first on line 2"),
        ('{"a": 1}\n' * 120_000 + '{"a": 1, "a": 2}', 120_001, "duplicate"),
        ("- a\n- b\n", 1, "must be a mapping of fields, not a list"),
        ("a: 1\n---\njust words\n", 3, "must be a mapping of fields, not 'just words'"),
        ('{"a": 1}\n[1]', 2, "must be a mapping"),
        ("a:\n\t- b\n", 2, "not YAML"),
        ("a: [1, 2\nb: 3\n", 2, "not YAML"),
        ('{"a": 1}\n{"a": }', 2, "not JSON"),
        ('{"a": 1}\n{"a": NaN}', None, "NaN is not JSON"),
        ("a: !!python/object:os.system x\n", 1, "tag 'tag:yaml.org,2002:python/object:os.system' is not accepted"),
        ("a: !secret x\n", 1, "tag '!secret' is not accepted"),
        ("base: &b {x: 1}\njob: {<<: *b}\n", 2, "merge keys"),
        ("a: *nowhere\n", 1, "not YAML|no anchor"),
        ("a: &a [*a]\n", 1, "not YAML|no anchor"),
        ("1: x\n", 1, "the key '1' is not text"),
        ("no: x\n", 1, "the key 'no' is not text"),
        ("{[a]: x}\n", 1, "a mapping's key must be text"),
        ('{"a": 1}\n{"a": "\\ud800"}', 2, "half of a surrogate pair"),
        ("a: \ud800", 1, "not valid Unicode"),
        ("a: \x01", None, "not YAML"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(text: str, line: int | None, message: str) -> None:
    found = problems_of(text)
    assert any(part in str(found) for part in message.split("|")), found
    assert found[0].line == line


def test_on_is_a_name_of_a_field_and_not_a_truth() -> None:
    [document] = read_documents("notify: [{to: ops, on: [failure]}]\n", name="here")
    assert document.value == {"notify": [{"to": "ops", "on": ["failure"]}]}


def test_tabs_are_told_apart_with_a_hint() -> None:
    assert problems_of("a:\n\tb: 1\n")[0].hint == "indent with spaces, not tabs"


def test_several_duplicates_are_reported_together() -> None:
    assert len(problems_of("a: 1\na: 2\nb: 1\nb: 2\n")) == 2


@pytest.mark.parametrize("text", ["[" * 5000, '{"a":' * 5000, '{"b": 1}' + '{"a":' * 5000, "a: " + "{b: " * 5000])
def test_runaway_nesting_is_refused(text: str) -> None:
    said = str(problems_of(text))
    assert any(words in said for words in ("levels deep", "not YAML", "not JSON"))


def test_nesting_up_to_the_limit_is_fine() -> None:
    text = json.dumps({"a": json.loads("[" * 60 + "]" * 60)})
    assert read_documents(text)[0].value["a"] is not None
    assert "levels deep" in str(problems_of('{"b": 1}\n' + json.dumps({"a": json.loads("[" * 70 + "]" * 70)})))


def test_an_alias_bomb_is_refused_before_it_costs_anything() -> None:
    levels = [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 12)]
    before = time.perf_counter()
    (problem,) = problems_of("l0: &l0 [x, x, x]\n" + "\n".join(levels))
    assert "aliases expand" in problem.message
    assert time.perf_counter() - before < 2


def test_plain_aliases_work() -> None:
    (document,) = read_documents("a: &x {k: 1}\nb: *x\nc: &s text\nd: *s\n")
    assert document.value == {"a": {"k": 1}, "b": {"k": 1}, "c": "text", "d": "text"}


def test_a_text_larger_than_the_limit_is_refused() -> None:
    with pytest.raises(InvalidManifest, match="at most 10 are read"):
        read_documents("a: 1234567890", largest=10)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("12", 12), ("-3", -3),
        ("0", 0), ("1.5", 1.5), ("1.0e+3", 1000.0), ("0x1F", 31), ("1h30m", "1h30m"), ("2Gi", "2Gi"), ("a b", "a b"),
        ("'NO'", "NO"), ('"010"', "010"), ("1.2.3", "1.2.3"), ("-", None), ("none", "none"), ("yesterday", "yesterday"),
    ],
)  # fmt: skip
def test_plain_scalars_have_one_meaning(written: str, value: object) -> None:
    read = read_documents(f"k: {written}" if written != "-" else "k:")[0].value["k"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("NO", "boolean"), ("yes", "boolean"), ("off", "boolean"), ("010", "octal"), ("0o17", "octal"),
        ("1_000", "separators"), ("1:30", "base 60"), ("2024-01-01", "date"), ("2024-01-01T10:00:00Z", "date"),
        (".inf", "not finite"), (".nan", "not finite"), ("1.0e+999", "infinite"), ("1e3", "1.2"),
    ],
)  # fmt: skip
def test_scalars_that_yaml_versions_read_differently_are_marked(written: str, kind: str) -> None:
    value = read_documents(f"k: {written}")[0].value["k"]
    assert isinstance(value, Ambiguous)
    assert kind in value.kind
    assert value == written


def test_ten_thousand_json_lines_are_read_quickly() -> None:
    line = json.dumps({"name": "j", "command": ["/bin/true", "x"], "resources": {"cpu": 0.1}, "env": {"A": "b"}})
    before = time.perf_counter()
    assert len(read_documents("\n".join([line] * 10_000))) == 10_000
    assert time.perf_counter() - before < 3  # measured 0.05 s; the bound only catches a change of order


LIST = """\
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- kind: Job
  spec:
    command: [a]
- kind: Queue
---
kind: Job
"""


def test_what_a_list_of_kubernetes_holds_are_documents_with_their_lines() -> None:
    found = read_documents(LIST)
    assert [(one.index, one.value["kind"]) for one in found] == [(0, "Job"), (1, "Queue"), (2, "Job")]
    assert [one.line_of("") for one in found] == [5, 8, 10]
    assert found[0].line_of("spec.command[0]") == 7
    as_json = read_documents('{"apiVersion": "v1", "kind": "List", "items": [{"kind": "Job"}, {"kind": "Queue"}]}')
    assert [one.value for one in as_json] == [{"kind": "Job"}, {"kind": "Queue"}]


@pytest.mark.parametrize(("items", "path"), [("3", "items"), ("{a: b}", "items"), ("[{kind: Job}, x]", "items[1]")])
def test_a_list_that_holds_something_else_is_refused_with_its_place(items: str, path: str) -> None:
    with pytest.raises(InvalidManifest) as caught:
        read_documents(f"apiVersion: v1\nkind: List\nitems: {items}\n")
    (problem,) = caught.value.problems
    assert (problem.path, problem.line) == (path, 3)
