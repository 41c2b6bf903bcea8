"""What Fluster's clients send: launches as job specifications, and retries in the units of the protocol."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.api.connect.mapping import plain
from holdfast.domain.access import Principal
from holdfast.fluster import RetryConfig
from holdfast.service.manifests.fluster import Along, written_launch
from tools.memory_store import MemoryStore

LEAST = {"name": "exp/train", "serialized_entrypoint": b"#!/bin/sh\ntrue\n"}


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        pytest.param({}, "grace_s", 5.0, id="a program has 5 s between SIGTERM and SIGKILL"),
        pytest.param({}, "group", "exp", id="a job is in the group of its parent"),
        pytest.param({}, "keeps_work", False, id="a work directory goes with its attempt"),
        pytest.param({}, "scheduling_timeout_s", None, id="a job without a timeout waits for a place forever"),
        pytest.param({"scheduling_timeout_seconds": 300}, "scheduling_timeout_s", 300.0, id="a timeout is kept"),
        pytest.param({"ports": ["http"]}, "ports", ("http",), id="ports are kept by name"),
        pytest.param(
            {"environment": {"env_vars": {"FLUSTER_JOB_ID": "mine", "X": "1"}}},
            "env",
            {"FLUSTER_JOB_ID": "exp/train", "X": "1"},
            id="variables may not replace the name of the job",
        ),
        pytest.param({"resources": {"replicas": 3}}, "gang", 3, id="replicas are a gang"),
    ],
)
def test_a_launch_is_read_into_a_specification(given: dict[str, Any], field: str, value: object) -> None:
    along = Along(Principal("ann"), None, None)
    name, written = written_launch({**LEAST, **given}, MemoryStore().catalogue(), [], along)
    assert (name, getattr(written.spec, field)) == ("exp/train", value)


def test_the_client_sends_its_delays_in_milliseconds() -> None:
    sent = plain(RetryConfig(initial_delay=1.5, max_delay=30.0).message())
    assert (sent["initial_retry_delay_ms"], sent["max_retry_delay_ms"]) == (1500, 30_000)
