"""What a real server tells of a chain of sessions: events, a webhook, metrics, the audit log, and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.domain.sessions.model import session_id
from tests.e2e.backendai_stage import BackendAiServer
from tests.e2e.server import wait_until
from tests.e2e.test_backendai_sessions import body, until
from tests.integration.notify.conftest import Receiver

if TYPE_CHECKING:
    from pathlib import Path


def manifest(kind: str, name: str, spec: dict[str, object]) -> str:
    return json.dumps({"apiVersion": "holdfast.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})


def test_the_retries_of_a_session_are_told_and_only_its_policy_retries_it(tmp_path: Path) -> None:
    """RX-001, RX-005, RX-007, RX-008."""
    receiver, server = Receiver(), BackendAiServer(tmp_path, HOLDFAST_NOTIFY_ALLOW="127.0.0.1")
    receiver.open.set()
    try:
        with server.start() as client:
            notify = [{"to": "hook", "on": ["retry", "exhausted"]}]
            entries = [
                manifest("Notifier", "hook", {"type": "webhook", "url": f"{receiver.url}/ok"}),
                manifest("Queue", "default", {"notify": notify}),
            ]
            applied = server.run("apply", "-f", "-", text="\n".join(entries))
            assert applied.returncode == 0, applied.stderr
            policy = {"max_retries": 1, "retry_delay": 0.1}
            root = server.call("POST", "/v2/sessions", body("train", "exit 3", retry_policy=policy)).json()["session"]
            wait_until(lambda: len(receiver.received) == 2, "two notifications")
            events = [event for event in client.events() if ".session." in event.type]
            assert [event.type.split(".", 2)[2] for event in events] == [
                "session.retry_scheduled.v1",
                "session.retry_exhausted.v1",
            ]
            job = events[0].subject.removeprefix("jobs/")
            child = session_id(job, 1)
            assert events[0].data["session_id"] == root["id"] == session_id(job, 0)
            assert (events[0].data["child_id"], events[1].data["session_id"]) == (child, child)
            bodies = [json.loads(message.body) for message in receiver.received]
            assert [(sent["type"], sent["data"]["session"]["attempt"]) for sent in bodies] == [
                ("session.retry_scheduled", 2),
                ("session.retry_exhausted", 2),
            ]
            until(server, child, "TERMINATED")
            metrics = client.metrics()
            for name in ("scheduled", "exhausted"):
                assert f'bai_session_retry_{name}_total{{cause="kernel_nonzero_exit"}} 1.0' in metrics
            assert "bai_session_retry_succeeded_total 0.0" in metrics
            audited = [entry for entry in server.json("get", "audit")["items"] if entry["action"] == "retry"]
            assert [(entry["actor"], entry["detail"].partition(" session=")[0]) for entry in audited] == [
                ("system", "auto=true cause=kernel_nonzero_exit attempt=2 of=2")
            ]
            why = server.run("why", job).stdout
            assert f"Session {child} is attempt 2 of 2 of its chain." in why
            assert "Rule eligible of policy session" in why
            assert "It is not retried: " in why
            first = server.run("why", job, "--attempt", "1").stdout
            assert f"Session {root['id']} is attempt 1 of 2 of its chain." in first
            assert "It is retried: retry 1 of 1" in first
            refused = server.run("retry", job)
            assert refused.returncode != 0
            assert "is a session, which is retried by its retry policy alone" in refused.stderr
            assert "create another session" in refused.stderr
    finally:
        server.clean_up()
        receiver.close()
