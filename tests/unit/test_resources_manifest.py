"""``resources`` of a manifest: GPUs, shares of them, and what has a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.dialects.native.job import read_job_manifest
from holdfast.dialects.native.writing import write_job
from holdfast.domain.devices import ANY, GpuSelector
from holdfast.domain.job import Resources
from holdfast.domain.workloads.spec import JobSpec

if TYPE_CHECKING:
    from holdfast.errors import Problem


def read(resources: object) -> JobSpec:
    problems: list[Problem] = []
    found = read_job_manifest({"command": ["x"], "resources": resources}, path="", problems=problems)
    assert problems == []
    assert isinstance(found, JobSpec)
    return found


@pytest.mark.parametrize(
    ("gpu", "asked", "wanted"),
    [
        (2, (2, 0), ANY),
        ("2", (2, 0), ANY),
        (0.25, (0, 250), ANY),
        ("0.001", (0, 1), ANY),
        (1.0, (1, 0), ANY),
        ("shared", (0, 250), ANY),
        ({"type": "A100*"}, (1, 0), GpuSelector("A100*")),
        ({"count": 4, "memory": "40Gi"}, (4, 0), GpuSelector("", 40 << 30)),
        ({"count": "shared", "type": "T4"}, (0, 250), GpuSelector("T4")),
        (None, (0, 0), ANY),
    ],
)
def test_gpus_are_a_number_a_share_or_both_with_what_will_do(
    gpu: object, asked: tuple[int, int], wanted: GpuSelector
) -> None:
    spec = read({"gpu": gpu})
    assert ((spec.resources.gpu, spec.resources.share_m), spec.gpus) == (asked, wanted)


def test_what_has_a_name_is_counted_in_thousandths() -> None:
    named = read({"licence/matlab": 1, "scratch": "20Gi", "token/s3": 0.5, "none": 0}).resources.named
    assert named == (("licence/matlab", 1000), ("scratch", 20_000 << 30), ("token/s3", 500))


AMOUNTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["licence/matlab", "scratch", "token/S3", "a.b-c"]), st.integers(1, 10**15), max_size=4
)


@given(st.integers(0, 9), st.integers(0, 999), AMOUNTS, st.sampled_from([ANY, GpuSelector("A*", 7), GpuSelector("x")]))
def test_what_is_written_reads_back_equal(gpu: int, share_m: int, named: dict[str, int], wanted: GpuSelector) -> None:
    resources = Resources(500, 7, gpu, 0 if gpu else share_m, tuple(sorted(named.items())))
    spec = JobSpec("x", ("x",), resources=resources, gpus=wanted)
    again = read(write_job(spec)["resources"])
    assert (again.resources, again.gpus) == (resources, wanted)
