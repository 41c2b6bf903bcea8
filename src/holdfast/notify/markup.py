"""Keeps what a program wrote from being read as markup: nobody is called by it, and no link has another name."""

from __future__ import annotations

import re

_APART = "\u200b"
"""A space of no width: people see no difference."""
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_LINK = re.compile(r"\](?=\()")


def for_slack(text: str) -> str:
    """Escape a text as Slack requires; Mattermost and Rocket.Chat also read ``@all`` and ``[name](address)``."""
    return _without_calls(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def for_any(text: str) -> str:
    """Return a text in which no medium finds a mention, a link with another name or a tag; it cannot know escapes."""
    return _without_calls(text.replace("<", f"<{_APART}"))


def _without_calls(text: str) -> str:
    return _LINK.sub(f"]{_APART}", _MENTION.sub(f"@{_APART}", text))
