"""API tokens: whose they are, what they keep to, and what whoever shows one that opens nothing is told."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance, WrongTokens
from holdfast.app.entrance import accounts
from holdfast.client import Client
from holdfast.domain.access import Principal
from holdfast.errors import AlreadyExists, Forbidden, HoldfastError, InvalidRequest, NotFound, Unauthenticated
from holdfast.service.access.book import FRESH_S
from holdfast.storage.sql import open_store
from tests.contract.test_client_api import served
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from holdfast.wire.catalogue import TokenMade

OWN = "the-embedded-token"
LAB = Principal("lab", uid=1000)
ACCOUNTS = {
    "lab": LAB,
    "ann": Principal("ann", ("ml",), uid=1001),
    "ops": Principal("ops", uid=1003),
    "root": Principal("root", uid=0),
}
JOB = {"name": "train", "command": ["true"]}
QUEUE = {"apiVersion": "holdfast.dev/v1", "kind": "Queue"}


class Lab:
    """Servers of one database, and clients of them that show tokens."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path, self.stack, self.clock, self.accounts = path, stack, VirtualClock(), dict(ACCOUNTS)
        self.ids = Counting()
        self.admin = self.client(OWN)
        self.admin.put_settings({"access": {"operator": ["user:ops"]}})
        self.clock.time += FRESH_S

    def client(self, token: str) -> Client:
        """Show a token to a server of its own."""
        store = open_store(self.path)
        self.stack.callback(store.close)
        entrance = Entrance(LAB, OWN, account=self.accounts.get)
        app = create_app(store=store, clock=self.clock, ids=self.ids, logs=NoLogs(), entrance=entrance)
        return self.stack.enter_context(Client(self.stack.enter_context(served(app)), token))

    def made(self, name: str, **wanted: object) -> TokenMade:
        made = self.admin.create_token(name, **wanted)  # type: ignore[arg-type]
        self.clock.time += FRESH_S
        return made


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with ExitStack() as stack:
        yield Lab(tmp_path / "holdfast.db", stack)


def test_who_shows_a_token_is_its_user_and_no_more_than_its_role(lab: Lab) -> None:
    token = lab.made("ci", user="ann", role="user").token
    ann = lab.client(token)
    assert ann.submit(JOB).submitted_by == "ann"
    with pytest.raises(Forbidden):
        ann.put_settings({})
    looking = lab.client(lab.made("eyes", user="ops", role="viewer").token)
    assert [one.name for one in looking.jobs()] == ["train"]
    with pytest.raises(Forbidden, match="whose role here is viewer"):
        looking.cancel("train")
    lab.client(lab.made("steers", user="ops").token).cancel("train")
    assert [(one.actor, one.action) for one in lab.admin.audit() if one.kind == "job"][-1] == ("ops", "cancel")


def test_a_token_is_no_more_than_its_user_has_become(lab: Lab) -> None:
    steers = lab.client(lab.made("steers", user="ops", role="operator").token)
    steers.queues.create({**QUEUE, "metadata": {"name": "one"}})
    lab.admin.put_settings({"access": {"viewer": ["user:ops"]}})
    lab.clock.time += FRESH_S
    with pytest.raises(Forbidden, match="whose role here is viewer"):
        steers.queues.create({**QUEUE, "metadata": {"name": "two"}})


def test_a_token_is_for_what_its_scope_says(lab: Lab) -> None:
    ci = lab.client(lab.made("ci", user="ann", scopes=["submit,watch@job"]).token)
    ci.submit(JOB)
    with pytest.raises(Forbidden, match="with this token: its scope is submit,watch@job"):
        ci.cancel("train")
    with pytest.raises(Forbidden, match="with this token"):
        ci.nodes()
    with pytest.raises(Forbidden):
        ci.create_token("more")


def test_what_a_token_is_to_be_is_checked_together(lab: Lab) -> None:
    with pytest.raises(InvalidRequest) as caught:
        lab.admin.create_token("No Name", user="ann", role="admn", scopes=["run@job", "watch@jop", "all"], expires_s=0)
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["name", "role", "expiresIn", "scopes[0]", "scopes[1]", "scopes[2]", "scopes[2]"]
    with pytest.raises(InvalidRequest, match="'operator' is more than ann has"):
        lab.admin.create_token("t", user="ann", role="operator")
    with pytest.raises(InvalidRequest, match="bot has no role here"):
        lab.admin.create_token("t", user="bot")
    with pytest.raises(Forbidden, match="may not create tokens of root"):
        lab.admin.create_token("t", user="root")
    lab.made("t")
    with pytest.raises(AlreadyExists):
        lab.made("t")
    lab.admin.revoke_token("t")
    lab.made("t")


def test_people_make_and_see_their_own_tokens_only(lab: Lab) -> None:
    lab.made("hers", user="ann")
    lab.made("mine")
    ann = lab.client(lab.made("ci", user="ann").token)
    assert [one.name for one in ann.tokens()] == ["ci", "hers"]
    assert [one.name for one in lab.admin.tokens()] == ["ci", "hers", "mine"]
    assert ann.create_token("another").user == "ann"
    with pytest.raises(Forbidden, match="ann may not create tokens of ops"):
        ann.create_token("t", user="ops")
    with pytest.raises(NotFound):
        ann.revoke_token("mine")


def refusal(ask: Callable[[], object]) -> HoldfastError:
    with pytest.raises(Unauthenticated) as caught:
        ask()
    return caught.value


def test_what_opens_nothing_is_told_apart_only_to_who_has_the_secret(lab: Lab) -> None:
    made = lab.made("ci", user="ann", expires_s=60)
    known, secret = made.token[:17], made.token[17:]
    unknown = [refusal(lab.client(text).me) for text in (f"hft_{'0' * 12}_{secret}", f"{known}{secret[::-1]}")]
    assert {(one.message, one.hint) for one in unknown} == {
        ("this server does not know that token", "run holdfast token list on the server to see the tokens it knows")
    }
    assert "not a complete API token" in refusal(lab.client(made.token[:-1]).me).message
    lab.client(made.token).me()
    lab.clock.time += 3600
    expired = refusal(lab.client(made.token).me)
    assert expired.message == "token 'ci' of ann expired 59m ago by this server's clock, which may be wrong"
    assert "check the server's clock" in (expired.hint or "")
    again = lab.made("gone", user="ann").token
    lab.admin.revoke_token("gone")
    lab.clock.time += FRESH_S
    assert refusal(lab.client(again).me).message == "token 'gone' of ann was revoked"


def test_a_new_token_is_known_at_once(lab: Lab) -> None:
    other = lab.client(lab.made("one", user="ann").token)
    other.me()
    made = lab.admin.create_token("two", user="ann")
    with Client(other.connection.address, made.token) as client:
        assert client.me().name == "ann"


def test_a_revoked_token_opens_no_other_server_of_the_database_a_second_later(lab: Lab) -> None:
    client = lab.client(lab.made("ci", user="ann").token)
    client.me()
    lab.admin.revoke_token("ci")
    lab.clock.time += FRESH_S
    assert "was revoked" in refusal(client.me).message


def test_an_account_that_was_made_again_under_a_name_needs_a_new_token(lab: Lab) -> None:
    client = lab.client(lab.made("ci", user="ann").token)
    client.me()
    lab.accounts["ann"] = Principal("ann", uid=1099)
    lab.clock.time += 31.0
    assert "belongs to an account 'ann' that no longer exists" in refusal(client.me).message


def test_only_a_hash_is_kept_and_nothing_tells_the_secret(lab: Lab) -> None:
    made = lab.made("ci", user="ann")
    secret = made.token.partition("_")[2].partition("_")[2]
    lab.client(made.token).me()
    assert [one.used_on for one in lab.admin.tokens()] != [""]
    kept = [file.read_bytes() for file in lab.path.parent.iterdir() if file.is_file()]
    assert not any(secret.encode() in part for part in kept)
    assert secret not in str([one.model_dump() for one in lab.admin.audit()])


def test_who_guesses_waits_longer_and_longer_and_little_is_kept_of_them() -> None:
    clock = VirtualClock()
    wrong = WrongTokens(clock.now)
    waits = [wrong.delay_s("10.0.0.1") for _ in range(40)]
    assert waits[:10] == [0.0] * 10
    assert waits[-1] == 2.0
    assert wrong.delay_s("10.0.0.2") == 0.0
    clock.time += 61.0
    assert wrong.delay_s("10.0.0.1") == 0.0
    for number in range(5000):
        wrong.delay_s(str(number))
    assert len(wrong._tries) <= 512  # noqa: SLF001 - what it keeps is the point


def test_accounts_are_found_by_their_names() -> None:
    found = accounts.named("root")
    assert found is not None
    assert (found.name, found.uid) == ("root", 0)
    assert accounts.named("nobody-of-this-name") is None
