"""A server says at its start when nothing but a supervisor keeps a run together."""

from __future__ import annotations

import pytest

from holdfast.app.server import warn_of_weak_containment
from holdfast.domain.job import Resources
from holdfast.engines.process.places import CONTAINMENT_LABEL
from holdfast.ports.engine import NodeInfo


@pytest.mark.parametrize(("containment", "said"), [("supervisor", 1), ("cgroup-v1", 0), ("cgroup-v2", 0)])
def test_a_server_without_control_groups_says_so(containment: str, said: int, caplog: pytest.LogCaptureFixture) -> None:
    nodes = [NodeInfo("here", Resources(1000), {CONTAINMENT_LABEL: containment})]
    warn_of_weak_containment(nodes)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * said
