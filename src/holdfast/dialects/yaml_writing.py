"""Writes documents as YAML, for people to read and to apply again."""

from __future__ import annotations

import yaml

from holdfast.dialects.steering import DIRECTIONS, WRITTEN_OUT

_STEERING = frozenset(map(chr, DIRECTIONS))


class _Dumper(yaml.SafeDumper):
    """Quotes text with characters that must be escaped."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None if _STEERING.isdisjoint(value) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def write_yaml(value: object) -> str:
    """Write plain data (mappings, lists, scalars) as one YAML document, keys in their given order.

    Control characters and direction marks are escaped; they read back the same.
    """
    written = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=120)
    return written.translate(WRITTEN_OUT)
