"""A hook of MkDocs: pages with a figure load Mermaid from the site itself.

The theme loads it from another host unless it is there already, so it goes before the theme's own script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mkdocs.utils import get_relative_url

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

MERMAID = "assets/mermaid.tiny.js"


def on_post_page(output: str, *, page: Page, **_: Any) -> str:  # noqa: ANN401 - MkDocs passes more
    """Put Mermaid into a page that has a figure."""
    if 'class="mermaid"' not in output:
        return output
    return output.replace("</head>", f'<script src="{get_relative_url(MERMAID, page.url)}"></script></head>', 1)
