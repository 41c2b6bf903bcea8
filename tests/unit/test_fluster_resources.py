"""What Fluster's jobs ask for and are called: Docker's sizes, GPUs, replicas, regions; names and parents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.fluster.names import FlusterJobName, is_below, read_name
from holdfast.dialects.fluster.resources import DISK, Offers, ResourceRequest, parse_size, read_resources
from holdfast.domain.devices import Device, GpuSelector
from holdfast.domain.terms.resources import Resources

if TYPE_CHECKING:
    from holdfast.errors import Problem

GIB = 1 << 30


def read(given: dict[str, Any] | None, offers: Offers = Offers()) -> ResourceRequest:  # noqa: B008 - it is frozen
    problems: list[Problem] = []
    asked = read_resources(given, problems, offers)
    assert problems == []
    return asked


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512m", 512 << 20),
        ("512M", 512 << 20),
        ("8g", 8 * GIB),
        ("8gb", 8 * GIB),
        ("8GiB", 8 * GIB),
        ("8 g", 8 * GIB),
        ("1.5g", 3 * GIB // 2),
        ("1024", 1024),
        ("7b", 7),
        ("1t", 1 << 40),
    ],
)
def test_sizes_are_read_as_docker_reads_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "m", "-1g", "8x", "1e9", "8gg", "2000p", "1.g", "½g"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


def test_a_job_that_asks_for_nothing_has_one_core_and_runs_once() -> None:
    assert read(None) == read({}) == ResourceRequest(Resources(), 1)


def test_cores_memory_gpus_and_replicas() -> None:
    gpu = {"gpu": {"variant": "H100", "count": 8}}
    asked = read({"cpu": 4, "memory": "512m", "device": gpu, "replicas": 3})
    assert (asked.resources, asked.gang) == (Resources(4000, 512 << 20, 8), 3)
    assert asked.gpus.admits(Device("0", 0, "NVIDIA H100 80GB HBM3", 80 * GIB))
    assert not asked.gpus.admits(Device("0", 0, "NVIDIA A100-SXM4-40GB", 40 * GIB))
    devices: list[dict[str, Any]] = [{"gpu": {}}, {"gpu": {"variant": "auto"}}, {"gpu": {"variant": "", "count": 1}}]
    for device in devices:
        assert read({"device": device}).resources.gpu == 1
        assert read({"device": device}).gpus == GpuSelector()
    assert read({"device": {"cpu": {"variant": "cpu"}}, "replicas": 0, "memory": ""}) == ResourceRequest()


def test_all_that_is_wrong_is_told_at_once() -> None:
    problems: list[Problem] = []
    device = {"tpu": {"variant": "v4-8"}, "gpu": {"count": 0}}
    given = {"cpu": -1, "memory": "many", "disk": "x", "device": device, "replicas": -1, "cores": 2}
    read_resources(given, problems)
    assert [one.path for one in problems] == [
        "resources.cpu",
        "resources.memory",
        "resources.disk",
        "resources.device.tpu",
        "resources.device.gpu.count",
        "resources.replicas",
        "resources.cores",
    ]
    assert "no TPUs" in problems[3].message


def test_disk_is_counted_where_a_node_offers_it_and_else_that_is_said() -> None:
    asked = read({"disk": "2g"}, Offers(resources=frozenset({DISK})))
    assert asked.resources.named == ((DISK, 2 * GIB * 1000),)
    assert asked.warnings == ()
    asked = read({"disk": "2g"})
    assert (asked.resources.named, [one.path for one in asked.warnings]) == ((), ["resources.disk"])


def test_a_region_is_kept_to_where_there_are_nodes_of_it_and_else_that_is_said() -> None:
    there = Offers(labels=frozenset({("region", "eu"), ("region", "us")}))
    assert read({"regions": ["eu", "mars"]}, there).node_selector == {"region": "eu"}
    for regions in (["mars"], ["eu", "us"]):
        asked = read({"regions": regions, "preemptible": True}, there)
        assert asked.node_selector == {}
        assert [one.path for one in asked.warnings] == ["resources.preemptible", "resources.regions"]
    assert read({"regions": [], "preemptible": False}, there) == ResourceRequest()


@pytest.mark.parametrize(
    ("name", "parent", "wanted"),
    [
        ("train", "", FlusterJobName("train", "", "train")),
        ("exp/w0", "", FlusterJobName("exp/w0", "exp", "w0")),
        ("a/b/Größe 3!", "a/b", FlusterJobName("a/b/Größe 3!", "a/b", "gr-e-3")),
        ("a/b/c", "a", FlusterJobName("a/b/c", "a", "c")),
        ("///", "", FlusterJobName("///", "//", "job")),
        ("日本", "", FlusterJobName("日本", "", "job")),
        ("x" * 1023, "", FlusterJobName("x" * 1023, "", "x" * 63)),
    ],
)
def test_a_name_is_any_text_and_its_parent_is_before_its_last_slash(
    name: str, parent: str, wanted: FlusterJobName
) -> None:
    problems: list[Problem] = []
    assert read_name(name, parent, problems) == wanted
    assert problems == []


@pytest.mark.parametrize(
    ("name", "parent", "path"),
    [("", "", "name"), ("x" * 1024, "", "name"), ("a\0", "", "name"), ("ab/c", "a", "parent_job_id")],
)
def test_a_name_that_cannot_be_one_is_refused(name: str, parent: str, path: str) -> None:
    problems: list[Problem] = []
    assert read_name(name, parent, problems) is None
    assert [one.path for one in problems] == [path]


def test_a_job_is_below_another_by_whole_parts_of_its_name() -> None:
    assert is_below("a/b", "a")
    assert is_below("a/b/c", "a/b")
    assert not is_below("ab", "a")
    assert not is_below("a", "a")
