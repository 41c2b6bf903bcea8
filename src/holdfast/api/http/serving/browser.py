"""Lets a browser read ``/docs``: a form asks for the token once, and a cookie stands for it from then on.

The cookie opens nothing but the description of the API, and only to read it: browsers send cookies to every port of a
host, so a page of another program on this machine could otherwise make requests in the user's name.
"""

from __future__ import annotations

import hmac
from importlib import resources
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

DOCS = "/docs"
COOKIE = "holdfast_docs"
LASTS_S = 12 * 3600
_READABLE = frozenset({DOCS, "/openapi.json"})
_LONGEST_FORM = 4096
_FILES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css", "favicon-32x32.png": "image/png"}
_ONLY_OURS = """default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';
 img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'""".replace(
    "\n", ""
)
_HEADERS = {"Cache-Control": "no-store", "Content-Security-Policy": _ONLY_OURS, "Referrer-Policy": "no-referrer"}
"""These keep a browser from loading anything from another host."""
_FORM = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Holdfast</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 32rem; margin: 10vh auto; padding: 0 1rem }}
input, button {{ font: inherit }} input {{ width: 100%; box-sizing: border-box; margin: .5rem 0 }}</style></head>
<body><h1>Holdfast</h1>
<form method="post" action="/docs"><label>Token <input type="password" name="token" autofocus required></label>
<button>Read the API documentation</button></form>
<p>{note}</p></body></html>
"""
_WHERE = (
    "The token is in the file <code>token</code> of the server's data directory, unless a setting gives another one."
)


def install(app: FastAPI) -> None:
    """Serve ``/docs`` and the files it needs, all from this server."""

    @app.get(DOCS, include_in_schema=False)
    def docs() -> Response:
        page = get_swagger_ui_html(
            openapi_url="/openapi.json",
            title="Holdfast API",
            swagger_js_url=f"{DOCS}/swagger-ui-bundle.js",
            swagger_css_url=f"{DOCS}/swagger-ui.css",
            swagger_favicon_url=f"{DOCS}/favicon-32x32.png",
            swagger_ui_parameters={"validatorUrl": None},
        )
        page.headers.update(_HEADERS)
        return page

    @app.get(f"{DOCS}/{{name}}", include_in_schema=False)
    def file(name: str) -> Response:
        if name not in _FILES:
            return Response(status_code=404)
        resource = resources.files("fastapi_swagger").joinpath("resources", name)
        return Response(resource.read_bytes(), media_type=_FILES[name])


class SignIn:
    """Exchanges a token typed into a form for a cookie, and checks such cookies."""

    def __init__(self, digest: bytes, now: Callable[[], float]) -> None:
        """Sign with the hash of the token: cookies become invalid with it, and none has to be stored."""
        self._digest = digest
        self._now = now

    def lets_read(self, scope: Scope) -> bool:
        """Whether a request reads the API's description with a valid cookie."""
        path = scope["path"]
        if scope["method"] != "GET" or not (path in _READABLE or path.startswith(f"{DOCS}/")):
            return False
        until, _, signature = Request(scope).cookies.get(COOKIE, "").partition(".")
        return (
            until.isdecimal()
            and int(until[:20]) > self._now()
            and hmac.compare_digest(signature.encode(), self._signature(until).encode())
        )

    def wants_form(self, scope: Scope) -> bool:
        """Whether a browser requests the page, so that the form is the answer."""
        return scope["path"] == DOCS and "text/html" in Headers(scope=scope).get("accept", "")

    async def answer(self, scope: Scope, receive: Receive, send: Send, *, is_token: Callable[[str], bool]) -> None:
        """Show the form, or check the token typed into it."""
        if scope["method"] != "POST":
            response: Response = HTMLResponse(_FORM.format(note=_WHERE), 401, _HEADERS)
        elif is_token(await _typed(Request(scope, receive))):
            response = RedirectResponse(DOCS, 303, _HEADERS)
            until = str(int(self._now()) + LASTS_S)
            response.set_cookie(
                COOKIE,
                f"{until}.{self._signature(until)}",
                max_age=LASTS_S,
                httponly=True,
                samesite="strict",
                secure=scope["scheme"] == "https",
            )
        else:
            response = HTMLResponse(_FORM.format(note=f"That is not the token. {_WHERE}"), 401, _HEADERS)
        await response(scope, receive, send)

    def _signature(self, until: str) -> str:
        return hmac.new(self._digest, f"{COOKIE} {until}".encode(), "sha256").hexdigest()


async def _typed(request: Request) -> str:
    """Return the token typed into a form, or an empty string if it is missing or the form is too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_FORM:
            return ""
    return parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
