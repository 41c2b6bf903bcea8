"""Writes the REST reference, the metrics and the errors from the application itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from holdfast.api.http.serving.app import Probes, create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.app.entrance.doors import DOORS
from holdfast.app.telemetry import Telemetry
from holdfast.app.time import SortableIds, SystemClock
from holdfast.cli import exit_codes
from holdfast.domain.access import Principal
from holdfast.engines.process.files import ProcessLogs
from holdfast.errors import all_errors
from holdfast.wire.problems import STATUS
from tools.docs.source import definitions, markdown, table
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI


def application(registry: CollectorRegistry | None = None) -> FastAPI:
    """Build the application over an empty store in memory."""
    return create_app(
        store=MemoryStore(),
        clock=SystemClock(),
        ids=SortableIds(),
        logs=ProcessLogs(Path("runs")),
        entrance=Entrance(Principal("nobody")),
        probes=Probes(registry or CollectorRegistry()),
    )


def endpoints() -> str:
    """List every path with its calls; paths with the same calls share a row, as do the actions on one thing."""
    paths: Mapping[str, Mapping[str, Any]] = application().openapi()["paths"]
    rows: dict[str, list[str]] = {}
    actions: dict[str, list[str]] = {}
    for path, calls in paths.items():
        name = path.removeprefix("/api/v1")
        target, _, action = name.rpartition("/")
        if target.endswith("}") and [(method, _query(call)) for method, call in calls.items()] == [("post", "")]:
            actions.setdefault(target, []).append(f"`{action}`")
        else:
            cell = "; ".join(f"`{method.upper()}` {_title(name, call)}{_query(call)}" for method, call in calls.items())
            rows.setdefault(cell, []).append(f"`{name}`")
    listed = [(", ".join(names), calls) for calls, names in rows.items()]
    listed += [(f"`{target}/ACTION`", f"`POST` {', '.join(names)}") for target, names in actions.items()]
    return definitions(listed)


def _title(path: str, call: Mapping[str, Any]) -> str:
    """Return what a call does, without the kind that its path names already."""
    plural = path.split("/")[1].replace("-", " ")
    singular = re.sub("ies$", "y", plural) if plural.endswith("ies") else plural.removesuffix("s")
    summary: str = call["summary"]
    return summary if " of " in summary else re.sub(f"( an?| the)?( API)? ({plural}|{singular})$", "", summary)


def _query(call: Mapping[str, Any]) -> str:
    names = [f"`{parameter['name']}`" for parameter in call.get("parameters", ()) if parameter["in"] == "query"]
    return f" ({', '.join(names)})" if names else ""


def metrics() -> str:
    """List every metric; those by node and by queue share a row."""
    registry = Telemetry(lambda: 0.0, DOORS).registry
    application(registry)
    families = {family.name: family for family in registry.collect()}
    rows = []
    for name, family in sorted(families.items()):
        shown, meaning = f"`{name}{'_total' if family.type == 'counter' else ''}`", family.documentation
        by_queue = name.replace("_by_node", "_by_queue")
        if by_queue != name and by_queue in families:
            shown, meaning = f"{shown}, `{by_queue}`", meaning.replace("by node", "by node or queue")
        elif name.replace("_by_queue", "_by_node") != name:
            continue
        rows.append((f"{shown} ({family.type})", meaning))
    return definitions(rows)


def errors() -> str:
    """List every error: its code, what it means, and what becomes of it."""
    rows = [
        [
            f"`{error.code}`",
            markdown((error.__doc__ or "").splitlines()[0]),
            STATUS[error],
            exit_codes.BY_ERROR[error],
        ]
        for error in all_errors()[1:]
    ]
    return table(["Code", "Meaning", "HTTP status", "Exit code"], rows)
