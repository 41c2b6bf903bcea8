"""Settings of the environment: read, overridden, and refused with every mistake at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app import running
from holdfast.app.settings import read_settings
from holdfast.controller.workloads.pods import CRASH_BACKOFF
from holdfast.domain.job import Resources
from holdfast.domain.workloads.kubejob.model import POD_BACKOFF
from holdfast.errors import InvalidSetting


def test_what_is_given_counts_more_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_DATA", "/srv/environment")
    assert read_settings().data == Path("/srv/environment")
    assert read_settings(data=Path("/srv/flag")).data == Path("/srv/flag")


@pytest.mark.parametrize(("text", "size"), [(None, 256 << 20), ("1Gi", 1 << 30), ("0", 0)])
def test_the_limit_of_a_log_is_a_size(monkeypatch: pytest.MonkeyPatch, text: str | None, size: int) -> None:
    if text is not None:
        monkeypatch.setenv("HOLDFAST_LOG_LIMIT", text)
    assert read_settings().log_limit == size


def test_pods_are_replaced_as_patiently_as_in_kubernetes_unless_the_operator_says_otherwise() -> None:
    usual = running.pods(read_settings())
    assert (usual.backoff, usual.crash_backoff) == (POD_BACKOFF, CRASH_BACKOFF)
    quick = running.pods(read_settings(pod_backoff="50ms", pod_backoff_max="20m"))
    assert (quick.backoff.initial_s, quick.backoff.max_s) == (0.05, 1200.0)
    assert (quick.crash_backoff.initial_s, quick.crash_backoff.max_s) == (0.05, 300.0)


def test_what_the_machine_offers_is_divided_among_its_nodes() -> None:
    offered = running.nodes(read_settings(nodes=2, cpus=8, memory="4Gi", gpus=4))
    assert [node.capacity for node in offered] == [Resources(cpu_m=4000, memory=2 << 30, gpu=2)] * 2
    assert [node.labels["kubernetes.io/hostname"] for node in offered] == [node.name for node in offered]


def test_every_wrong_variable_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NODES", "zero")
    monkeypatch.setenv("HOLDFAST_CPUS", "-1")
    with pytest.raises(InvalidSetting) as caught:
        read_settings()
    said = {problem.path: problem.message for problem in caught.value.problems}
    assert set(said) == {"HOLDFAST_NODES", "HOLDFAST_CPUS"}
    assert said["HOLDFAST_CPUS"] == "Input should be greater than 0, not '-1'"
