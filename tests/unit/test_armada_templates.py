"""The id of a job in its labels and annotations, as Armada's server fills it in."""

from __future__ import annotations

import pytest

from holdfast.dialects.armada.jobs import read_items
from holdfast.dialects.armada.templates import names_job_id, with_job_id

AMOUNTS = {"cpu": "1", "memory": "1Gi"}
POD = {"containers": [{"name": "main", "args": ["{JobId}"], "resources": {"requests": AMOUNTS, "limits": AMOUNTS}}]}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("http://foo.com/{JobId}", "http://foo.com/01a"),
        ("http://foo.com/{{JobId}}", "http://foo.com/JobId"),
        ("{JobId}-{JobId}/{{JobId}}", "01a-01a/JobId"),
        ("{{{JobId}}}", "{JobId}"),
        ("{jobid} {JobId", "{jobid} {JobId"),
    ],
)
def test_the_id_of_a_job_is_filled_in_in_its_labels_and_annotations_and_nowhere_else(written: str, meant: str) -> None:
    item = {"namespace": "n", "podSpec": POD, "labels": {"a": written, "c": "d"}, "annotations": {"b": written}}
    spec = read_items("q", "s", [item])[0].spec
    assert names_job_id(spec) is ("{JobId}" in written)
    found = with_job_id(spec, "01a")
    assert (found.labels, found.annotations) == ({"a": meant, "c": "d"}, {"b": meant})
    assert found.pod is not None
    assert {key: found.pod.written[key] for key in ("labels", "annotations", "podSpec")} == {
        "labels": {"a": meant, "c": "d"},
        "annotations": {"b": meant},
        "podSpec": POD,
    }
    assert found.command == ("{JobId}",)
