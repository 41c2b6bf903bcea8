"""Writes documents as YAML for people to read and to apply again; reading is ``yaml_text``."""

from __future__ import annotations

import yaml


def write_yaml(value: object) -> str:
    """Write plain data (mappings, lists, scalars) as one YAML document, keys in their given order."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=False, width=120)
