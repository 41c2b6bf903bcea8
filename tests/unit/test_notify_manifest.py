"""How ``notify`` and notifiers are written, and what is said of those that are written wrong."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.compiled.codec import dump_entry, dump_spec, load_array, load_entry, load_spec
from holdfast.dialects.documents import Document
from holdfast.dialects.native.catalogue import write_queue
from holdfast.dialects.native.notify import write_notifier
from holdfast.domain.job import Queue
from holdfast.domain.notifier import DEFAULT_OCCASIONS, Notifier, Notify, Occasion
from holdfast.domain.workloads.array.model import ArraySpec
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import InvalidManifest
from tests.reading import read_all

V1 = "holdfast.dev/v1"


def read(kind: str, spec: dict[str, Any], name: str = "ops") -> Any:  # noqa: ANN401 - of any kind
    value = {"apiVersion": V1, "kind": kind, "metadata": {"name": name}, "spec": spec}
    [found] = read_all([Document(value)])
    return found


def problems(kind: str, spec: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidManifest) as caught:
        read(kind, spec)
    return [str(problem) for problem in caught.value.problems]


def job(notify: object, **more: object) -> dict[str, Any]:
    return {"command": ["true"], "notify": notify, **more}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("ops", (Notify("ops"),)),
        (["ops", {"to": "me"}], (Notify("ops"), Notify("me"))),
        ([{"to": "me", "on": "failure"}], (Notify("me", (Occasion.FAILURE,)),)),
        ({"to": "me", "on": ["hold", "end", "hold"]}, (Notify("me", (Occasion.HOLD, Occasion.END)),)),
    ],
)
def test_notify_is_a_name_or_names_with_what_each_is_told_of(written: object, expected: tuple[Notify, ...]) -> None:
    spec = read("Job", job(written))
    assert isinstance(spec, JobSpec)
    assert spec.notify == expected
    assert load_spec(dump_spec(spec)) == spec
    queue = read("Queue", {"notify": written})
    assert isinstance(queue, Queue)
    assert (queue.notify, load_entry(Queue, dump_entry(queue))) == (expected, queue)
    assert read("Queue", write_queue(queue)) == queue


def test_by_default_people_are_told_when_a_job_does_not_go_on_by_itself() -> None:
    assert DEFAULT_OCCASIONS == (Occasion.END, Occasion.HOLD)


def test_an_array_is_told_of_as_a_whole_and_its_tasks_are_not() -> None:
    spec = read("Job", job("ops", array={"indices": 3}))
    assert isinstance(spec, ArraySpec)
    assert (spec.notify, spec.job.notify, spec.task(3).notify) == ((Notify("ops"),), (), ())
    assert load_array(dump_spec(spec)) == spec


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            [{"to": "ops", "on": ["fail", "end"]}],
            "spec.notify[0].on[0]: 'fail' is not an event; allowed: end, failure, hold, stall, recovery, retry,",
        ),
        ([{"on": "end"}], "spec.notify[0].to: is required"),
        ([{"to": "ops", "on": []}], "spec.notify[0].on: is empty; allowed: end, failure, hold, stall, recovery,"),
        ([{"to": "ops", "when": "end"}], "spec.notify[0].when: unknown field 'when'; allowed: on, to"),
        ("https://example.org/hook", "spec.notify: must be the name of a notifier, not a URL; hint: create a notifier"),
        ([3], "spec.notify[0]: must be text, not"),
        (["Not A Name"], "spec.notify[0]: "),
        (["ops"] * 33, "spec.notify: has 33 entries; at most 32 are allowed"),
    ],
)
def test_what_is_wrong_with_notify_is_said_with_its_place_and_what_is_allowed(written: object, said: str) -> None:
    [found] = problems("Job", job(written))
    assert found.startswith(said)


NOTIFIERS: list[dict[str, Any]] = [
    {"type": "webhook", "url": "https://example.org/hook?x=1"},
    {"type": "webhook", "url": {"file": "hook"}, "secret": {"env": "HOLDFAST_SECRET_HOOK"}, "timeout": 3.0},
    {"type": "slack", "url": {"env": "HOLDFAST_SECRET_SLACK"}},
    {"type": "apprise", "url": {"file": "telegram"}},
    {"type": "command", "command": ["/usr/local/bin/page", "--loud"]},
    {"type": "email", "host": "mail", "port": 25, "security": "none", "from": "h@example.org", "to": ["a@example.org"]},
    {
        "type": "email",
        "host": "mail.example.org",
        "port": 465,
        "security": "tls",
        "from": "h@example.org",
        "to": ["a@example.org", "b@example.org"],
        "user": "h",
        "password": {"file": "mail"},
    },
]


@pytest.mark.parametrize("spec", NOTIFIERS, ids=lambda spec: str(spec["type"]))
def test_a_notifier_reads_back_equal_as_it_is_written_and_stored(spec: dict[str, Any]) -> None:
    notifier = read("Notifier", spec)
    assert isinstance(notifier, Notifier)
    assert write_notifier(notifier) == spec
    assert load_entry(Notifier, dump_entry(notifier)) == notifier


IN_CLEAR = "is a secret, which is not written in a manifest; hint: write {env: HOLDFAST_SECRET_NAME} for a variable"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "spec.type: is required"),
        ({"type": "webhok", "url": "https://a.b"}, "spec.type: 'webhok' is not one of its values"),
        ({"type": "webhook"}, "spec.url: is required"),
        ({"type": "webhook", "url": "ftp://a.b"}, "spec.url: 'ftp://a.b' is not the URL of a web server"),
        ({"type": "webhook", "url": "https://"}, "spec.url: 'https://' is not the URL of a web server"),
        ({"type": "webhook", "url": "http://a:99999/"}, "spec.url: 'http://a:99999/' is not a URL: Port out of range"),
        ({"type": "webhook", "url": "http://u:p@a.b/"}, "spec.url: contains a user or a password; hint: a URL with a"),
        (
            {"type": "webhook", "url": "http://a.b/c d"},
            "spec.url: 'http://a.b/c d' contains characters that no URL can",
        ),
        ({"type": "webhook", "url": "https://a.b", "secret": "whsec_c2VjcmV0"}, f"spec.secret: {IN_CLEAR}"),
        ({"type": "slack", "url": "https://hooks.slack.com/services/T/B/xyz"}, f"spec.url: {IN_CLEAR}"),
        ({"type": "apprise", "url": "tgram://token/chat"}, f"spec.url: {IN_CLEAR}"),
        (
            {"type": "slack", "url": {"env": "AWS_SECRET_KEY"}},
            "spec.url.env: 'AWS_SECRET_KEY' is not the name",
        ),
        ({"type": "slack", "url": {"file": "../id_rsa"}}, "spec.url.file: '../id_rsa' is not the name of a file there"),
        ({"type": "slack", "url": {"file": ".."}}, "spec.url.file: '..' is not the name of a file there"),
        ({"type": "slack", "url": {}}, "spec.url: needs either env or file; allowed: env, file"),
        ({"type": "command"}, "spec.command: is required"),
        ({"type": "command", "command": ["page"]}, "spec.command[0]: 'page' is not an absolute path"),
        ({"type": "command", "command": []}, "spec.command: must name a program"),
        ({"type": "command", "command": ["/a"], "url": "x"}, "spec.url: does not apply to a notifier of type command"),
        ({"type": "webhook", "url": "https://a.b", "timeout": "2m"}, "spec.timeout: '2m' must be at most 60s"),
        ({"type": "email", "host": "m", "from": "a@b.c", "to": []}, "spec.to: names nobody"),
        ({"type": "email", "host": "m", "from": "a@b.c", "to": ["nobody"]}, "spec.to[0]: 'nobody' is not an e-mail"),
        (
            {"type": "email", "host": "m", "from": "a@b.c", "to": ["d@e.f"], "user": "u", "password": "hunter2"},
            f"spec.password: {IN_CLEAR}",
        ),
    ],
)
def test_what_is_wrong_with_a_notifier_is_said_without_repeating_a_secret(spec: dict[str, Any], said: str) -> None:
    found = problems("Notifier", spec)
    assert found[0].startswith(said)
    assert not any(secret in line for line in found for secret in ("hunter2", "c2VjcmV0", "xyz", "tgram", "u:p"))


def test_all_that_is_wrong_is_said_at_once() -> None:
    found = problems("Notifier", {"type": "email", "from": "x", "to": ["y"], "prot": 25, "security": "tsl"})
    assert [line.partition(":")[0] for line in found] == [
        "spec.security",
        "spec.from",
        "spec.to[0]",
        "spec.host",
        "spec.prot",
    ]
