"""Two people with tokens of their own: neither gets the other's secret, and both get their queue's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.client import Client
from holdfast.errors import Forbidden
from tests.e2e.test_cli_shell import Shell, served, shell
from tests.e2e.test_limits_of_queues import person

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["person", "served", "shell"]


def _client(who: Shell) -> Client:
    return Client(who.environ["HOLDFAST_URL"], who.environ["HOLDFAST_TOKEN"])


def _says(client: Client, job: str, who: Shell) -> str:
    who.run("wait", job, "--timeout", "60s")
    return client.logs(job).text


@pytest.mark.slow
def test_a_secret_opens_to_its_owner_and_to_its_queue_alone(served: Shell, person: Callable[[str], Shell]) -> None:
    at_ann, at_bob = person("ann"), person("bob")
    folder = served.folder / "data" / "secrets"
    assert served.run("create", "queue", "ml").code == 0
    with _client(at_ann) as ann, _client(at_bob) as bob:
        hers = ann.keep_secret("of ann")
        echo: dict[str, Any] = {"shell": "echo $KEY", "env": {"KEY": {"secret": hers}}, "resources": {"cpu": 0.1}}
        for thief in ({"name": "job", **echo}, {"name": "gang", "gang": 2, **echo}):
            with pytest.raises(Forbidden, match="names secrets that it may not use"):
                bob.submit(thief)
        with pytest.raises(Forbidden):
            bob.submit_array({"name": "sweep", "array": {"indices": "0-1"}, **echo})
        assert _says(ann, ann.submit({"name": "mine", **echo}).id, at_ann) == "of ann\n"
        (folder / "hub").write_text("of ml\n")
        env = {"KEY": {"secret": "hub"}}
        with pytest.raises(Forbidden):
            bob.submit({**echo, "name": "early", "queue": "ml", "env": env})
        (folder / "hub.owner").write_text("queue:ml\n")
        assert _says(bob, bob.submit({**echo, "name": "ours", "queue": "ml", "env": env}).id, at_bob) == "of ml\n"
        with pytest.raises(Forbidden):
            bob.submit({**echo, "name": "elsewhere", "env": env})
        assert served.run("update", "queue", "ml", "--paused").code == 0
        late = bob.submit({**echo, "name": "late", "queue": "ml", "env": env}).id
        (folder / "hub.owner").write_text("user:lab:ann\n")
        assert served.run("update", "queue", "ml", "--no-paused").code == 0
        at_bob.run("wait", late, "--timeout", "60s")
        shown = json.loads(at_bob.run("get", "job", late, "-o", "json").out)
        assert shown["state"] == "Failed"
        assert "there is no secret 'hub'" in at_bob.run("why", late).out
