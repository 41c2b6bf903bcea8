"""The built site works offline: no page loads a script, style or font from another host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?([^\"' >]+)|<link\b([^>]*)>")
KINDS = re.compile(r"""rel=["']?(?:stylesheet|preload|preconnect|icon|modulepreload|dns-prefetch)""")
STYLED = re.compile(r"""@import|url\(["']?(?:https?:)?//""")
ELSEWHERE = re.compile(r"(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return place


def loads(text: str) -> list[str]:
    """List what a page loads by itself, links for people left out."""
    links = [match[2] for match in LOADED.finditer(text) if match[2] and KINDS.search(match[2])]
    return [match[1] for match in LOADED.finditer(text) if match[1]] + [
        found[1] for link in links if (found := re.search(r"href=[\"']?([^\"' >]+)", link))
    ]


def test_no_page_of_the_site_loads_anything_from_another_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    named = {(page.name, one) for page in pages for one in loads(page.read_text())}
    assert named
    assert [one for one in named if ELSEWHERE.match(one[1])] == []
    styles = [path for path in site.rglob("*.css") if STYLED.search(path.read_text())]
    assert [*styles, *(page for page in pages if STYLED.search(page.read_text()))] == []


def test_a_page_with_a_figure_has_the_sites_own_mermaid_before_the_theme_would_fetch_one(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if 'class="mermaid"' in page.read_text()]
    assert len(pages) >= 3
    for page in pages:
        scripts = [one for one in loads(page.read_text()) if one.endswith(".js")]
        first = next(one for one in scripts if "mermaid" in one)
        assert scripts.index(first) < next(place for place, one in enumerate(scripts) if "/bundle." in one)
        assert 'globalThis["mermaid"] =' in (page.parent / first).resolve().read_text()
    others = [page for page in site.rglob("*.html") if page not in pages]
    assert not [page for page in others if "mermaid" in "".join(loads(page.read_text()))], "it is large"
