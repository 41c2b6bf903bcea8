"""Reads request bodies as text and checks their media type."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from holdfast.service.api.manifests import Format, Text

_FORMATS = {
    "application/json": Format.JSON,
    "application/yaml": Format.YAML,
    "application/x-yaml": Format.YAML,
    "text/yaml": Format.YAML,
    "text/x-yaml": Format.YAML,
    "application/x-ndjson": Format.LINES,
    "application/jsonl": Format.LINES,
}


async def _read_text(request: Request) -> Text:
    media_type = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media_type not in _FORMATS:
        detail = f"a body of type {media_type!r} is not read here; send one of: {', '.join(sorted(_FORMATS))}"
        raise HTTPException(415, detail)
    return Text.of(await request.body(), _FORMATS[media_type])


BodyText = Annotated[Text, Depends(_read_text)]
"""A parameter of this type is given the body as text."""
