"""The names of ``holdfast`` itself: there for type checkers and for programs, and imported only when used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api

import holdfast

HEAVY = "msgspec", "pydantic", "re2", "sqlalchemy", "cloudpickle"


def imported_by(program: str) -> set[str]:
    text = f"{program}\nimport sys\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize(
    "program", ["import holdfast", "import holdfast; holdfast.current", "import holdfast.sdk.calls.worker"]
)
def test_what_a_run_imports_is_the_standard_library_alone(program: str) -> None:
    assert not imported_by(program).intersection(HEAVY)


def test_every_public_name_can_be_imported_and_an_unknown_one_is_an_attribute_error() -> None:
    assert [name for name in holdfast.__all__ if getattr(holdfast, name, None) is None] == []
    assert set(holdfast.__all__) <= set(dir(holdfast))
    with pytest.raises(AttributeError, match="no attribute 'Cleint'"):
        _ = holdfast.Cleint  # type: ignore[attr-defined] # which type checkers see, too


@pytest.mark.slow
def test_a_misspelt_state_is_found_by_a_type_checker(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from holdfast.sdk.states import State\n\n\n"
        "def is_over(state: State) -> bool:\n    return state == 'Suceeded' or state == 'Failed'\n"
    )
    src = Path(holdfast.__file__).parents[1]
    config = tmp_path / "mypy.ini"
    config.write_text(f"[mypy]\nstrict = True\nmypy_path = {src}\ncache_dir = {tmp_path}\n")
    found, _, code = api.run(["--config-file", str(config), str(program)])
    assert code == 1
    assert found.count("error:") == 1
    assert "Suceeded" in found
