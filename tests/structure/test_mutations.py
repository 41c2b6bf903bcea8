"""The list of mutations does not rot: each can still be applied, and is another way to break the code."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tools.mutate.drawn.argued import ARGUED
from tools.mutate.drawn.reading import mutants_of
from tools.mutate.mutation import ROOT, Mutation
from tools.mutate.mutations import MUTATIONS


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_can_be_applied_and_leaves_python(mutation: Mutation) -> None:
    assert mutation.problem() is None
    text = (ROOT / mutation.source).read_text()
    broken = text.replace(mutation.old, mutation.new)
    assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(text))
    assert mutation.tests


def test_mutations_have_names_of_their_own_and_are_in_every_part() -> None:
    assert [name for name, times in Counter(each.name for each in MUTATIONS).items() if times > 1] == []
    parts = Counter(each.file.partition("/")[0] for each in MUTATIONS)
    assert len(MUTATIONS) >= 40
    assert parts.keys() >= {"controller", "domain", "storage", "executor", "engines", "notify", "cli", "service"}


def test_what_is_argued_for_can_still_be_drawn_and_has_a_reason() -> None:
    sources = {each.source: (ROOT / each.source).read_bytes() for each in ARGUED}
    there = {each.about for file, source in sources.items() for each in mutants_of(file, source)}
    assert [each for each in ARGUED if each.about not in there] == []
    assert len({each.about for each in ARGUED}) == len(ARGUED)
    assert all(each.why.endswith(".") for each in ARGUED)


def test_a_mutation_whose_text_is_gone_says_so() -> None:
    gone = Mutation("gone", "executor/executor.py", "no such text", "", ("unit",))
    assert gone.problem() == "its text is 0 times in src/holdfast/executor/executor.py"
    assert Mutation("moved", "executor/moved.py", "", "", ()).problem() == "there is no src/holdfast/executor/moved.py"
