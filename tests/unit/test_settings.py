"""Settings of the environment: read, overridden, and refused with every mistake at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app import running
from holdfast.app.settings import Settings, read_settings
from holdfast.domain.job import Resources
from holdfast.domain.workloads.kubejob.model import POD_BACKOFF
from holdfast.domain.workloads.kubejob.pods import CRASH_BACKOFF
from holdfast.errors import InvalidSetting


def test_what_is_given_counts_more_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_DATA", "/srv/environment")
    assert read_settings().data == Path("/srv/environment")
    assert read_settings(data=Path("/srv/flag")).data == Path("/srv/flag")


@pytest.mark.parametrize("name", Settings.model_fields)
def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"HOLDFAST_{name.upper()}", "")
    assert read_settings() == Settings()


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("devices: [{id: GPU-1}, {id: GPU-1}]", "another device's id"),
        ("devices: [{id: GPU-1, maker: intel}]", "'intel' is not one of its values"),
        ("devices: [{id: '-', memory: much}]", "not an id"),
        ("devices: [{kind: A100}]", "unknown field 'kind'"),
        ("devices: []", "declares no device"),
        ("", "declares no device"),
    ],
)
def test_a_file_that_declares_devices_badly_is_refused_with_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "devices.yaml").write_text(text)
    with pytest.raises(InvalidSetting) as raised:
        running.devices(read_settings(data=tmp_path, devices=tmp_path / "devices.yaml"))
    assert said in str(raised.value.problems)


def test_a_file_of_devices_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting) as raised:
        running.devices(read_settings(data=tmp_path, devices=tmp_path / "none.yaml"))
    assert raised.value.problems[0].path == "HOLDFAST_DEVICES"


def test_devices_are_dealt_out_to_the_nodes_of_a_machine(tmp_path: Path) -> None:
    nodes = running.nodes(read_settings(data=tmp_path, gpus=3, nodes=2, resources="scratch=1Gi"))
    assert [[device.id for device in node.devices] for node in nodes] == [["gpu-0", "gpu-2"], ["gpu-1"]]
    assert [node.capacity.gpu for node in nodes] == [2, 1]
    assert {node.capacity.named for node in nodes} == {(("scratch", 1000 << 30),)}


@pytest.mark.parametrize("text", ["licence", "licence=", "cpu=2", "a=1,a=2", "-=1", "x=-1"])
def test_resources_that_cannot_be_offered_are_refused(text: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        read_settings(resources=text)
    assert raised.value.problems[0].path == "HOLDFAST_RESOURCES"
