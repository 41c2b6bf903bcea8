"""`./dev mutate`: what can be broken, which of it is drawn, and how a real test suite judges it."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from tools.mutate.__main__ import main
from tools.mutate.changes import changes, together
from tools.mutate.drawing import draw_all, draw_changed, mixed
from tools.mutate.mutants import Kind
from tools.mutate.mutators import MUTATORS, OF_PARTS
from tools.mutate.nearness import Nearness
from tools.mutate.places import PLACES, is_in
from tools.mutate.project import Project
from tools.mutate.reading import mutants_of

if TYPE_CHECKING:
    from pathlib import Path

POLICY = Project(package="src/holdfast/domain/policy")
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
class WaitGoal(Protocol):
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


def test_every_drawn_mutant_leaves_python_that_is_not_the_same() -> None:
    for mutant in islice(draw_all(POLICY, "3"), 30):
        source = (POLICY.root / mutant.place.file).read_bytes()
        assert ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source)), mutant.name


@pytest.mark.parametrize("place", PLACES)
def test_each_place_that_is_always_drawn_from_exists_and_can_be_broken(place: str) -> None:
    file = place.partition(":")[0]
    assert any(is_in(mutant, (place,)) for mutant in mutants_of(file, (POLICY.root / file).read_bytes()))


def test_one_of_a_few_comes_after_each_two_of_many_and_none_of_them_twice() -> None:
    mutants = mutants_of("m.py", function("f(1, 2, 3, 4, 5, 6)").encode())
    many, few = mutants[:5], [*mutants[5:7], mutants[0]]
    assert [*mixed(iter(many), iter(few))] == [*many[:2], few[0], *many[2:4], few[1], many[4]]


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
OUTSIDE = (
    """\
import subprocess
import sys


def test_what_wears_out_in_a_process() -> None:
    program = "from tiny.rules import wears_out; print(wears_out(9))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\\n"
""",
    "def test_something_else() -> None:\n    assert True\n",
)
FILES = {
    "src/tiny/__init__.py": "",
    "src/tiny/rules.py": RULES,
    "src/tiny/shown.py": "from tiny.rules import grants\n\n\ndef shown(used):\n    return str(grants(used, 1))\n",
    "tests/unit/test_rules.py": TESTS,
    "tests/unit/test_shown.py": "from tiny.shown import shown\n\n\ndef test_it() -> None:\n    assert shown(1)\n",
    "tests/unit/test_other.py": "import json\n\n\ndef test_it() -> None:\n    assert json\n",
}


@pytest.fixture
def tiny(tmp_path: Path) -> Project:
    """A package with a rule that is tested, one that hardly is, and one that is not."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Project(
        tmp_path, "src/tiny", places=(), suites=("tests/unit",), left_out=(), options=("--disable-plugin-autoload",)
    )


def git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgSign=false")
    subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


def commit(project: Project) -> None:
    git(project.root, "init", "-q")
    git(project.root, "add", ".")
    git(project.root, "commit", "-q", "--allow-empty", "-m", "Change something")


def edit(project: Project, file: str, before: str, after: str) -> None:
    text = (project.root / file).read_text()
    assert before in text
    (project.root / file).write_text(text.replace(before, after))


def test_a_seed_has_an_order_of_its_own_which_an_edit_elsewhere_leaves_as_it_is(tiny: Project) -> None:
    def order(seed: str) -> list[str]:
        return [mutant.name for mutant in draw_all(tiny, seed)]

    first = order("1")
    assert order("1") == first
    assert order("2") != first
    assert {*order("2")} == {*first}
    edit(tiny, "src/tiny/rules.py", "def grants", "def newer(used):\n    return used < 1\n\n\ndef grants")
    assert [name for name in order("1") if "newer" not in name] == first


def test_mutants_are_of_statements_that_changed_and_of_places_that_are_always_drawn_from(tiny: Project) -> None:
    commit(tiny)
    edit(tiny, "src/tiny/rules.py", "used > 9", "used > 8")
    commit(tiny)
    edit(tiny, "src/tiny/rules.py", "used == 9", "used == 7")
    changed = changes(tiny)
    assert changed is not None
    assert {mutant.place.where for mutant in draw_changed(tiny, changed.lines, "1")} == {"wears_out", "lonely"}
    always = replace(tiny, places=("src/tiny/rules.py:count",))
    assert {mutant.place.where for mutant in draw_changed(always, changed.lines, "1")} == {
        "wears_out",
        "lonely",
        "count",
    }
    since_head = changes(tiny, "HEAD")
    assert since_head is not None
    assert {mutant.place.where for mutant in draw_changed(tiny, since_head.lines, "1")} == {"lonely"}


def test_only_the_last_commits_count(tiny: Project) -> None:
    commit(tiny)
    edit(tiny, "src/tiny/rules.py", "used > 9", "used > 8")
    for _ in range(20):
        commit(tiny)
    changed = changes(tiny)
    assert changed is not None
    assert changed.lines == {"src/tiny/rules.py": frozenset({6})}
    commit(tiny)
    later = changes(tiny)
    assert later is not None
    assert later.lines == {}


def test_a_commit_that_is_not_there_is_refused(tiny: Project) -> None:
    commit(tiny)
    with pytest.raises(SystemExit, match="git has no commit 'nowhere' here"):
        main(["--since", "nowhere"], tiny)


def test_tests_near_a_module_share_its_words_or_changed_with_it(tiny: Project) -> None:
    def nearest(module: str) -> list[str]:
        return Nearness(tiny, tiny.test_files(tiny.suites), together(tiny)).nearest(module, 9)

    assert nearest("src/tiny/rules.py") == ["tests/unit/test_rules.py", "tests/unit/test_shown.py"]
    commit(tiny)
    for _ in range(3):
        edit(tiny, "tests/unit/test_other.py", "assert json", "assert json\n    assert json")
        edit(tiny, "src/tiny/rules.py", "used > ", "used > 0 + ")
        commit(tiny)
    assert nearest("src/tiny/rules.py")[0] == "tests/unit/test_other.py"


def test_what_tests_notice_is_told_from_what_survives(tiny: Project, capfd: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in tiny.root.rglob("*.py")}
    assert main(["--random", "100", "--seed", "1", "grants", "wears_out", "lonely"], tiny) == 0
    said = capfd.readouterr().out
    assert "5 mutants drawn from all lines with seed 1" in said
    assert "src/tiny/rules.py:6 in wears_out: SURVIVED (tests that run this line: 1)" in said
    assert "    comparison: used > 9\n             -> used >= 9" in said
    assert "src/tiny/rules.py:10 in lonely: UNTESTED (no test near its module runs this line)" in said
    assert said.splitlines()[-1].endswith("1 noticed, 2 SURVIVED, 2 UNTESTED")
    assert {path: path.read_bytes() for path in tiny.root.rglob("*.py")} == before


def test_a_survivor_fails_the_command_where_asked_and_a_clone_without_history_is_drawn_from_at_random(
    tiny: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    commit(tiny)
    assert main(["--strict", "--seed", "1", "wears_out"], tiny) == 1
    assert "2 mutants drawn from all lines, as git has no earlier commit, with seed 1" in capfd.readouterr().out


def test_tests_that_start_the_code_in_processes_of_their_own_judge_it_too(
    tiny: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    (tiny.root / "tests" / "e2e").mkdir()
    for number in range(2):
        (tiny.root / "tests" / "e2e" / f"test_outside_{number}.py").write_text(OUTSIDE[number])
    main(["wears_out"], tiny)
    said = capfd.readouterr().out
    assert "rules.py:6  comparison  e2e/test_outside_0.py::test_what_wears_out_in_a_process" in said
    assert "SURVIVED (tests that run this line: 1, tests/e2e/test_outside_0.py)" in said


def test_what_has_no_turn_in_time_says_so(tiny: Project, capfd: pytest.CaptureFixture[str]) -> None:
    main(["--random", "3", "--minutes", "0.0001"], tiny)
    assert capfd.readouterr().out.splitlines()[-1].endswith("3 untried")


@pytest.mark.slow
def test_a_mutant_that_never_ends_is_noticed_and_told_apart(
    tiny: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.mutate.trials._LONGEST_S", 10.0)
    assert main(["--random", "100", "--processes", "4", "--strict", "count"], tiny) == 0
    assert capfd.readouterr().out.splitlines()[-1].endswith("3 noticed, 1 never ends")
