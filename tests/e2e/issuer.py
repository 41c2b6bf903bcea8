"""A real OpenID Connect issuer in a process of its own: other people's code, with keys that it makes as it starts."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.e2e.server import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from pathlib import Path

AUDIENCE = "holdfast"
BACK = "http://127.0.0.1/back"


class Issuer:
    """The issuer; at most one process at a time, always at the same address."""

    def __init__(self, folder: Path, **people: dict[str, Any]) -> None:
        """Prepare it with people and what it says of them; nothing is started yet."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._people = [json.dumps({"sub": name, **claims}) for name, claims in people.items()]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, lasts_s: int = 3600) -> None:
        """Start it with new keys; its tokens expire after that time, which may lie in the past."""
        words = [sys.executable, "-m", "oidc_provider_mock", "--port", str(self.port), f"--token-max-age={lasts_s}"]
        told = [word for claims in self._people for word in ("--user-claims", claims)]
        with (self._folder / "issuer.log").open("ab") as log:
            self._process = subprocess.Popen([*words, *told], stdout=log, stderr=log)
        wait_until(self._answers, "an issuer that answers")

    def _answers(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/jwks", timeout=PATIENCE_S).status_code == 200
        return False

    def stop(self) -> None:
        """End it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
            self._process = None

    def token(self, name: str, audience: str = AUDIENCE) -> str:
        """Log somebody in, as a browser and an application do, and return the ID token."""
        asked = {"client_id": audience, "redirect_uri": BACK, "response_type": "code", "scope": "openid email profile"}
        with httpx.Client(base_url=self.url, timeout=PATIENCE_S) as client:
            back = client.post("/oauth2/authorize", params=asked, data={"sub": name})
            [code] = parse_qs(urlsplit(back.headers["location"]).query)["code"]
            given = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK}
            answer = client.post("/oauth2/token", data=given, auth=(audience, "secret"))
            return str(answer.raise_for_status().json()["id_token"])
