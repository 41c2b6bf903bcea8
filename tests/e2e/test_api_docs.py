"""``/docs`` in a browser: a form, a cookie that reads the description and nothing else, and no other host."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.e2e.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
ELSEWHERE = re.compile(r"""(?:src|href|action)=["']?(?:https?:)?//|@import|url\(["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("docs"))
    server.start().close()
    yield server
    server.clean_up()


@pytest.fixture
def browser(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=str(server.address()["url"]), headers=BROWSER) as client:
        yield client


def signed_in(server: Server, browser: httpx.Client) -> httpx.Response:
    return browser.post("/docs", data={"token": str(server.address()["token"])})


def test_a_browser_without_the_token_gets_a_form_and_nothing_else(server: Server, browser: httpx.Client) -> None:
    page = browser.get("/docs")
    assert (page.status_code, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert '<form method="post" action="/docs">' in page.text
    wrong = browser.post("/docs", data={"token": "wrong"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    assert browser.post("/docs", content=b"token=" + b"x" * 100_000).status_code == 401
    assert browser.get("/openapi.json").status_code == 401
    assert "at http" in server.log.read_text()
    assert "/docs" in server.log.read_text()


def test_the_token_in_the_form_opens_the_description_in_this_browser(server: Server, browser: httpx.Client) -> None:
    answer = signed_in(server, browser)
    assert (answer.status_code, answer.headers["location"]) == (303, "/docs")
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert str(server.address()["token"]) not in cookie + answer.headers["location"]
    assert "swagger" in browser.get("/docs").text
    assert browser.get("/openapi.json").json()["info"]["title"] == "Holdfast"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/v1/jobs"), ("POST", "/api/v1/jobs"), ("GET", "/metrics"), ("POST", "/openapi.json")],
)
def test_the_cookie_opens_nothing_but_the_description(
    server: Server, browser: httpx.Client, method: str, path: str
) -> None:
    signed_in(server, browser)
    assert browser.request(method, path, json={}).status_code == 401


@pytest.mark.parametrize("change", ["9999999999.", "1.", "x.", ""])
def test_a_cookie_of_ones_own_making_or_that_is_over_opens_nothing(
    server: Server, browser: httpx.Client, change: str
) -> None:
    signed_in(server, browser)
    signature = browser.cookies["holdfast_docs"].partition(".")[2]
    browser.cookies.set("holdfast_docs", f"{change}{signature}")
    assert browser.get("/openapi.json", headers={"Cookie": f"holdfast_docs={change}{signature}"}).status_code == 401


def test_no_page_of_the_server_asks_another_host_for_anything(server: Server, browser: httpx.Client) -> None:
    pages = [browser.get("/docs")]
    signed_in(server, browser)
    pages.append(browser.get("/docs"))
    assert [page.status_code for page in pages] == [401, 200]
    for page in pages:
        assert ELSEWHERE.findall(page.text) == []
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "http" not in policy, "browsers themselves refuse what comes from elsewhere"
    named = re.findall(r'(?:src|href)="([^"]+)"', pages[1].text)
    assert len(named) == 3
    assert [browser.get(name).status_code for name in named] == [200, 200, 200]
    assert ELSEWHERE.findall(browser.get("/docs/swagger-ui.css").text) == []
    assert json.loads(browser.get("/docs/nothing").text or "null") is None
