"""What the page shows of other tools is what they print, where they can be had: Debian's packages, unpacked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.docs.test_commands import ROOT, stable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PAGE = ROOT / "examples" / "side-by-side.md"
BLOCK = re.compile(r"^```shell-session\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PACKAGES = {"parallel": "parallel", "tsp": "task-spooler"}


def unpacked(place: Path) -> None:
    """Get what is not installed from Debian's mirror, without installing it; skip where it cannot be had."""
    for package in [package for command, package in PACKAGES.items() if not shutil.which(command)]:
        try:
            subprocess.run(("apt-get", "download", package), cwd=place, check=True, capture_output=True, timeout=60)
            (found,) = place.glob(f"{package}_*.deb")
            subprocess.run(("dpkg", "-x", found, place), check=True, capture_output=True)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            pytest.skip(f"{package} is not installed, and its package cannot be had: {error}")


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """Return an environment that finds the tools; what they leave running is ended."""
    unpacked(tmp_path)
    (tmp_path / ".parallel").mkdir()
    (tmp_path / ".parallel" / "will-cite").touch()
    path = f"{tmp_path / 'usr' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    made = {"PATH": path, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "TS_SOCKET": str(tmp_path / "ts")}
    yield made
    subprocess.run(("tsp", "-K"), env=made, check=False, capture_output=True)


@pytest.mark.slow
def test_what_other_tools_print_is_what_the_page_shows(tmp_path: Path, environ: Mapping[str, str]) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) >= len(PACKAGES)
    for block in blocks:
        parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
        for command, output in zip(parts[1::2], parts[2::2], strict=True):
            done = subprocess.run(
                ("sh", "-c", command),
                cwd=tmp_path,
                env=environ,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert stable(done.stdout) == stable(output), f"{command}\n{done.stderr}"
