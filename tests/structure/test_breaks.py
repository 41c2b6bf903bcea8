"""What the simulated world is tested against still breaks something: each named break patches what exists.

Those tests take minutes; this one says at once that a part they break was renamed.
"""

from __future__ import annotations

import pytest

from tests.property import test_simulation_catches, test_simulation_catches_harsh, test_simulation_catches_sets

BREAKS = {
    (module.__name__, name): break_it
    for module in (test_simulation_catches, test_simulation_catches_harsh, test_simulation_catches_sets)
    for name, (break_it, _) in module.BREAKS.items()
}


@pytest.mark.parametrize("named", BREAKS)
def test_a_named_break_patches_parts_that_exist(named: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKS[named](monkeypatch)
