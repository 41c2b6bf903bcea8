"""`./dev mutate --random`: what can be broken, which of it is drawn, and how a real test suite judges it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tools.mutate.drawn.command import mutate
from tools.mutate.drawn.covering import covering
from tools.mutate.drawn.drawing import draw
from tools.mutate.drawn.mutants import Kind, Place
from tools.mutate.drawn.mutators import MUTATORS, OF_PARTS
from tools.mutate.drawn.project import Project
from tools.mutate.drawn.reading import mutants_of

if TYPE_CHECKING:
    from pathlib import Path

POLICY = Project(decisions=("src/holdfast/domain/policy/decide.py", "src/holdfast/domain/policy/blame.py"))
EXAMPLES: dict[str, tuple[str, set[str]]] = {
    "Compare": ("return a <= b", {"return a < b"}),
    "UnaryOp": ("return f(not a)", {"return f(a)"}),
    "IfExp": ("return a if f() else b", {"return a", "return b", "return a if not f() else b"}),
    "BoolOp": ("return a and (b or c)", {"return a", "return b or c", "return a or (b or c)", "return a and b"}),
    "BinOp": ("return (a + b) * c", {"return a + b", "return c", "return (a - b) * c", "return a * c"}),
    "Tuple": ("return (a, b)", {"return (b,)", "return (a,)"}),
    "List": ("return [a]", {"return []"}),
    "Set": ("return {a}", {"return set()"}),
    "Dict": ("return {a: b, **c}", {"return {**c}", "return {a: b}"}),
    "ListComp": ("return [x for x in a if x]", {"return [x for x in a]"}),
    "SetComp": ("return {x for x in a if x}", {"return {x for x in a}"}),
    "DictComp": ("return {x: b for x in a if x}", {"return {x: b for x in a}"}),
    "GeneratorExp": ("return f(x for x in a if x)", {"return f(x for x in a)"}),
    "MatchOr": ("match a:\n    case 'x' | 'y':\n        return b", {"match a:\n    case 'x':\n        return b"}),
    "match_case": ("match a:\n    case _ if b:\n        return c", {"match a:\n    case _ if True:\n        return c"}),
    "Call": ("return f(a, b, c=d)", {"return f(b, a, c=d)", "return f(a, b)"}),
    "Constant": ("return f(True, 1)", {"return f(False, 1)", "return f(True, 2)"}),
    "Expr": ("f()", {"pass"}),
    "Assign": ("a.b = c", {"pass"}),
    "AugAssign": ("a += b", {"pass"}),
    "Delete": ("del a[b]", {"pass"}),
    "Raise": ("raise a", {"pass"}),
    "Continue": ("while a < b:\n    continue", {"while a < b:\n    pass"}),
    "Break": ("while a < b:\n    break", {"while a < b:\n    pass"}),
    "Return": ("return", {"pass"}),
    "If": ("if a:\n    f()", {"if not a:\n    f()"}),
    "While": ("while f():\n    g()", {"while not f():\n    g()"}),
}
LEFT_ALONE = """
from typing import TYPE_CHECKING, TypeAlias
if TYPE_CHECKING:
    from os import path
Either: TypeAlias = "int | str"
LIMIT_S = 30.0
class Kept(base(order=True)):
    field: dict[int, str | None]
class Wanted(Protocol):
    def kept(self, *, force: bool = False) -> None: ...
@wrapped(frozen=True, slots=True)
def f(a: int | None) -> tuple[int, str]:
    "It does what it does."
    _log.info("it is %s", a, extra=a)
    assert_never(a.kind)
    return f"{a + 1}" + "text"
"""
TWICE = """\
class A:
    def f(self, a):
        if (
            a < 1
        ):
            return a < 1
        return 2 < a
"""


def function(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"def decide(a, b, c, d):\n{lines}\n"


def test_everything_that_can_be_broken_has_an_example() -> None:
    assert {kind.__name__ for kind in (*MUTATORS, *OF_PARTS)} == EXAMPLES.keys()


@pytest.mark.parametrize("syntax", EXAMPLES)
def test_syntax_is_broken_as_its_example_says(syntax: str) -> None:
    body, expected = EXAMPLES[syntax]
    source = function(body).encode()
    broken = {ast.unparse(ast.parse(each.applied(source))) for each in mutants_of("m.py", source)}
    assert broken >= {ast.unparse(ast.parse(function(other))) for other in expected}


@pytest.mark.parametrize(
    ("operator", "opposite"),
    [
        *(("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"), ("==", "!="), ("!=", "==")),
        *(("is", "is not"), ("is not", "is"), ("in", "not in"), ("not in", "in")),
    ],
)
def test_each_comparison_has_its_opposite(operator: str, opposite: str) -> None:
    (mutant,) = mutants_of("m.py", function(f"return a {operator} b").encode())
    assert (mutant.before, mutant.after) == (f"a {operator} b", f"a {opposite} b")


def test_what_minds_no_order_is_not_given_another() -> None:
    assert [mutant.after for mutant in mutants_of("m.py", function("return max(a, b)").encode())] == ["max(a)"]


def test_texts_types_figures_and_log_lines_are_left_alone() -> None:
    assert [mutant.name for mutant in mutants_of("m.py", LEFT_ALONE.encode())] == []


def test_what_stands_beside_text_that_is_not_ascii_is_broken_in_its_place() -> None:
    source = 'def f(a):\n    return ("ä", a <= 1), "ö"\n'.encode()
    mutant = next(each for each in mutants_of("m.py", source) if each.kind is Kind.COMPARISON)
    assert mutant.applied(source).decode() == 'def f(a):\n    return ("ä", (a < 1)), "ö"\n'


def test_a_mutant_says_where_it_is_and_those_that_read_the_same_are_told_apart() -> None:
    found = [each for each in mutants_of("m.py", TWICE.encode()) if each.kind is Kind.COMPARISON]
    assert [each.name for each in found] == [
        "m.py A.f: comparison: a < 1 -> a <= 1",
        "m.py A.f: comparison: a < 1 -> a <= 1 (2)",
        "m.py A.f: comparison: 2 < a -> 2 <= a",
    ]
    assert [(each.line, each.place.first, each.place.last) for each in found] == [(4, 3, 5), (6, 6, 6), (7, 7, 7)]


def test_draws_are_the_same_for_a_seed_and_others_for_another() -> None:
    first = draw(POLICY, 15, 1)
    names = [mutant.name for mutant in first.mutants]
    assert names == [mutant.name for mutant in draw(POLICY, 15, 1).mutants]
    assert names[:5] == [mutant.name for mutant in draw(POLICY, 5, 1).mutants]
    assert len({*names} & {mutant.name for mutant in draw(POLICY, 15, 2).mutants}) < 15
    assert len(names) == 15
    assert first.of > 200


def test_every_drawn_mutant_leaves_python_that_is_not_the_same() -> None:
    for mutant in draw(POLICY, 30, 3).mutants:
        source = (POLICY.root / mutant.place.file).read_bytes()
        assert ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source)), mutant.name


def test_what_is_added_elsewhere_leaves_draws_as_they_are(tiny: Project) -> None:
    before = {mutant.name for mutant in draw(tiny, 100, 1).mutants}
    rules = tiny.root / "src" / "tiny" / "rules.py"
    rules.write_text("def newer(used):\n    return used < 1\n\n\n" + rules.read_text())
    after = [mutant.name for mutant in draw(tiny, 100, 1).mutants]
    assert {name for name in after if "newer" not in name} == before
    order = [mutant.name for mutant in draw(tiny, 100, 2).mutants]
    assert order != after
    assert {*order} == {*after}


RULES = """\
def grants(used: int, limit: int) -> bool:
    return used < limit


def wears_out(used: int) -> bool:
    return used > 9


def lonely(used: int) -> bool:
    return used == 9


def count(up_to: int) -> int:
    total = 0
    while total < up_to:
        total += 1
    return total
"""
TESTS = """\
from tiny.rules import count, grants, wears_out


def test_a_limit_is_a_limit() -> None:
    assert grants(1, 2)
    assert not grants(2, 2)


def test_what_wears_out() -> None:
    assert not wears_out(1)


def test_counting() -> None:
    assert count(3) == 3
    assert count(0) == 0
"""
FIXED = "\n\ndef test_what_wears_out_exactly() -> None:\n    assert wears_out(10)\n    assert not wears_out(9)\n"


@pytest.fixture
def tiny(tmp_path: Path) -> Project:
    """A package with a rule that is tested, one that hardly is, and one that is not."""
    for name, text in {"src/tiny/__init__.py": "", "src/tiny/rules.py": RULES, "tests/test_rules.py": TESTS}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Project(
        tmp_path, decisions=("src/tiny",), suites=("tests",), left_out=(), selected=("--disable-plugin-autoload",)
    )


def test_what_tests_notice_is_told_from_what_survives(tiny: Project, capfd: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in tiny.root.rglob("*.py")}
    assert mutate(tiny, 100, 1, words=["grants", "wears_out", "lonely"]) == 1
    said = capfd.readouterr().out
    assert "finding out which test runs which line, once (test files under coverage: 1)" in said
    assert "src/tiny/rules.py:6 in wears_out: SURVIVED (tests that run this line: 1)" in said
    assert "    comparison: used > 9\n             -> used >= 9" in said
    assert "src/tiny/rules.py:10 in lonely: UNTESTED (no test runs this line)" in said
    assert said.splitlines()[-1].endswith("1 noticed, 2 SURVIVED, 2 UNTESTED")
    assert {path: path.read_bytes() for path in tiny.root.rglob("*.py")} == before


def test_a_later_run_goes_on_and_tries_survivors_again_when_tests_were_added(
    tiny: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    assert mutate(tiny, 1, 1, words=["grants"]) == 0
    assert mutate(tiny, 100, 1, words=["grants", "wears_out"]) == 1
    assert "3 of 3 mutants drawn with seed 1, 2 of them to try" in capfd.readouterr().out
    assert mutate(tiny, 100, 1, words=["grants", "wears_out"]) == 1
    said = capfd.readouterr().out
    assert "3 of 3 mutants drawn with seed 1, 0 of them to try" in said
    assert "finding out" not in said
    path = tiny.root / "tests" / "test_rules.py"
    path.write_text(path.read_text() + FIXED)
    assert mutate(replace(tiny), 100, 1, words=["grants", "wears_out"]) == 0
    assert capfd.readouterr().out.splitlines()[-1].endswith("3 noticed")


def test_which_test_runs_a_line_is_found_out_again_when_the_code_was_edited(tiny: Project) -> None:
    rules = tiny.root / "src" / "tiny" / "rules.py"
    limits = ["tests/test_rules.py::test_a_limit_is_a_limit"]
    line = Place("src/tiny/rules.py", "grants", 2, 2, is_imported=False)
    assert covering(tiny).tests(line) == limits
    rules.write_text("def newer() -> None:\n    return\n\n\n" + rules.read_text())
    assert covering(replace(tiny)).tests(line) == []
    assert covering(replace(tiny)).tests(replace(line, first=6, last=6)) == limits
    (tiny.kept / "coverage").unlink()
    assert covering(replace(tiny)).tests(replace(line, first=6, last=6)) == limits


@pytest.mark.slow
def test_a_mutant_that_never_ends_is_noticed_and_told_apart(
    tiny: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.mutate.drawn.trials._LONGEST_S", 10.0)
    assert mutate(tiny, 100, 1, words=["count"], processes=4) == 0
    assert capfd.readouterr().out.splitlines()[-1].endswith("3 noticed, 1 never ends")
