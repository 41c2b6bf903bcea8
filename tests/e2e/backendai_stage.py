"""A server with Backend.AI's door open, and calls that are signed as its clients sign them."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.e2e.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

VERSION = "v9.20250722"


def signed(  # noqa: PLR0913 - what is signed
    url: str, access_key: str, secret: str, method: str, target: str, *, date: str = "", kind: str = "application/json"
) -> dict[str, str]:
    """Return the headers of a signed call."""
    host, date = url.partition("://")[2], date or datetime.now(UTC).isoformat()
    empty = hashlib.sha256(b"").hexdigest()
    text = f"{method}\n{target}\n{date}\nhost:{host}\ncontent-type:{kind}\nx-backendai-version:{VERSION}\n{empty}"
    day = datetime.fromisoformat(date).strftime("%Y%m%d")
    key = hmac.digest(hmac.digest(secret.encode(), day.encode(), "sha256"), host.encode(), "sha256")
    credential = (
        f"BackendAI signMethod=HMAC-SHA256, credential={access_key}:{hmac.digest(key, text.encode(), 'sha256').hex()}"
    )
    return {"Authorization": credential, "Date": date, "Content-Type": kind, "X-BackendAI-Version": VERSION}


class BackendAiServer(Server):
    """A server with the door open."""

    def __init__(self, folder: Path, **environ: str) -> None:
        super().__init__(folder, HOLDFAST_DOORS="backendai", **environ)
        self._http = httpx.Client(timeout=30)

    def variables(self) -> Mapping[str, str]:
        """Read what the server left for the administrator's client."""
        lines = (self.data / "backendai.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def call(self, method: str, target: str, body: object = None, **more: Any) -> httpx.Response:  # noqa: ANN401
        """Send a call signed by the administrator; ``headers`` replace those of the signature."""
        told = self.variables()
        url = told["BACKEND_ENDPOINT"]
        headers = signed(url, told["BACKEND_ACCESS_KEY"], told["BACKEND_SECRET_KEY"], method, target)
        headers.update(more.pop("headers", {}))
        content = more.pop("content", None)
        send = httpx.request if "verify" in more else self._http.request
        return send(method, f"{url}{target}", headers=headers, json=body, content=content, **more)

    def clean_up(self) -> None:
        """End everything of it."""
        self._http.close()
        super().clean_up()


@pytest.fixture
def door(tmp_path: Path) -> Iterator[BackendAiServer]:
    """A server with the door open; nothing of it outlives the test."""
    server = BackendAiServer(tmp_path)
    server.start()
    yield server
    server.clean_up()
