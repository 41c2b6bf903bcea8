"""Who changes the API counts it, so that programs of different age can say which is older."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from holdfast.wire.base import REVISION
from tools.docs.http import application

RECORDED = Path(__file__).parents[1] / "data" / "api-revisions.txt"
METHODS = ("get", "post", "put", "patch", "delete")


def shape(document: dict[str, Any]) -> dict[str, Any]:
    """Return what programs rely on: addresses with their parameters, and models with their fields."""
    calls = {
        f"{method} {path}": sorted(f"{one['in']} {one['name']}" for one in call.get("parameters", []))
        for path, methods in document["paths"].items()
        for method, call in methods.items()
        if method in METHODS
    }
    models = {name: sorted(model.get("properties", ())) for name, model in document["components"]["schemas"].items()}
    return {"calls": calls, "models": models}


def test_a_changed_api_has_another_revision() -> None:
    digest = sha256(json.dumps(shape(application().openapi()), sort_keys=True).encode()).hexdigest()[:16]
    recorded = RECORDED.read_text().split()
    assert recorded[-1] == digest, (
        f"the API changed: raise REVISION in wire/base.py, and add {digest} to {RECORDED.name}"
    )
    assert len(recorded) == REVISION, f"{RECORDED.name} has one line for each revision"
