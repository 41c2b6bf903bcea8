"""What is argued for of drawn mutants does not rot."""

from __future__ import annotations

from tools.mutate.drawn.argued import ARGUED
from tools.mutate.drawn.reading import mutants_of
from tools.mutate.running import ROOT


def test_what_is_argued_for_can_still_be_drawn_and_has_a_reason() -> None:
    sources = {each.source: (ROOT / each.source).read_bytes() for each in ARGUED}
    there = {each.about for file, source in sources.items() for each in mutants_of(file, source)}
    assert [each for each in ARGUED if each.about not in there] == []
    assert len({each.about for each in ARGUED}) == len(ARGUED)
    assert all(each.why.endswith(".") for each in ARGUED)
