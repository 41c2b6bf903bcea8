"""What requests for sessions name by ids is found among the entries of operators."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain.access import Principal
from holdfast.domain.audit import Caller
from holdfast.domain.job import Queue
from holdfast.domain.sessions.model import named_id
from holdfast.domain.terms.projects import Domain, Image, ResourceGroup
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import HoldfastError, NotFound, Refused
from holdfast.service.sessions.enqueue import new_session
from tools.memory_store import MemoryStore

ANN = Caller(Principal("ann"), 0.0)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.put_entry(Domain("closed", active=False))
    store.put_entry(Queue("closed", domain="closed"))
    store.put_entry(ResourceGroup("fast", node_selector={"gpu": "a100"}))
    store.put_entry(ResourceGroup("retired", active=False))
    store.put_entry(Image("python", "python:3.11", command=("nice",)))
    return store


def _enqueued(store: MemoryStore, **fields: Any) -> JobSpec:  # noqa: ANN401 - the fields of a request
    """Return the job of a session with these fields."""
    request = {
        "session_name": "train",
        "session_type": "batch",
        "project_id": named_id("project", "default"),
        "image_id": named_id("image", "default"),
        "resource_entries": [],
        "batch": {"startup_command": "true"},
        **fields,
    }
    session = new_session(ANN, request, store.catalogue(), access_key="", awaited=(), holder=None)
    spec = session.written.spec
    assert isinstance(spec, JobSpec)
    return spec


def test_the_image_and_the_resource_group_of_an_empty_catalogue_add_nothing(store: MemoryStore) -> None:
    spec = _enqueued(store)
    assert (spec.command, spec.node_selector) == (("bash", "-c", "true"), {})
    assert spec.session is not None
    assert (spec.session.image, spec.session.resource_group) == ("default", "default")
    assert spec.env["BACKENDAI_KERNEL_IMAGE"] == "local/process:latest"


@pytest.mark.parametrize(
    "group", [{"resource_group": "fast"}, {"resource_group_id": named_id("resource-group", "fast")}]
)
def test_a_session_runs_by_its_image_on_nodes_of_its_resource_group(store: MemoryStore, group: dict[str, str]) -> None:
    spec = _enqueued(store, image_id=named_id("image", "python"), **group)
    assert (spec.command, spec.node_selector) == (("nice", "bash", "-c", "true"), {"gpu": "a100"})
    assert spec.session is not None
    assert (spec.session.image, spec.session.resource_group) == ("python", "fast")


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"image_id": named_id("image", "ruby")}, NotFound, "there is no image"),
        ({"resource_group": "slow"}, NotFound, "there is no resource group 'slow'"),
        ({"resource_group_id": named_id("resource-group", "slow")}, NotFound, "there is no resource group"),
        ({"resource_group": "retired"}, Refused, "resource group 'retired' is not active"),
        ({"project_id": named_id("project", "closed")}, Refused, "domain 'closed' is not active"),
    ],
)
def test_what_is_not_there_or_not_active_takes_no_session(
    store: MemoryStore, fields: dict[str, str], error: type[HoldfastError], message: str
) -> None:
    with pytest.raises(error, match=message):
        _enqueued(store, **fields)
