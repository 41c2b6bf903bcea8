"""Arrays and job sets say in which queue their jobs wait, those from before it was kept, too."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from alembic import command
from sqlalchemy import column, insert, table

from holdfast.compiled.codec import dump_spec
from holdfast.domain.access.grants import Seen
from holdfast.domain.access.places import Place
from holdfast.domain.workloads.array.model import Array, ArraySpec, ArrayState, Indexes
from holdfast.domain.workloads.jobset.model import QUEUE_LABEL, JobSetSpec
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.spec import JobSpec
from holdfast.ports.workloads import WorkloadFilter
from holdfast.storage.sql import codec, migrations, open_store, tables
from holdfast.storage.sql.engine import Database
from holdfast.storage.sql.migrations import steps

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_those_from_before_it_was_kept_say_what_their_manifest_did(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(tmp_path / "h.db") if kind == "sqlite" else request.getfixturevalue("postgres_server").empty()
    array = ArraySpec(JobSpec("sweep", ("true",), queue="gpu"), (Indexes(0, 9),))
    old = [
        Array("a", name="sweep", spec=dump_spec(array), state=ArrayState()),
        Array("odd", name="odd", spec="{", state=ArrayState()),
        JobSet("s", name="set", spec=dump_spec(JobSetSpec(name="set", labels={QUEUE_LABEL: "gpu"}))),
        JobSet("t", name="plain", spec=dump_spec(JobSetSpec(name="plain"))),
    ]
    with closing(Database(url)) as database, database.writing() as connection:
        command.upgrade(steps.configuration(connection), "0033")
        names = tables.workloads.columns.keys()
        for row in map(codec.workload_row, old):
            values = {name: value for name, value in zip(names, row, strict=True) if name != "queue"}
            connection.execute(insert(table("workloads", *map(column, values))).values(values))
    migrations.upgrade(url)
    in_gpu = WorkloadFilter(seen=Seen(everyones=True, places=(Place(queue="gpu"),)))
    with closing(open_store(url)) as store:
        assert {one.name: one.queue for one in store.workloads(JobSet)} == {"plain": "default", "set": "gpu"}
        assert {one.name: one.queue for one in store.workloads(Array)} == {"odd": "", "sweep": "gpu"}
        assert [one.name for one in store.workloads(JobSet, in_gpu)] == ["set"]
        assert [one.name for one in store.workloads(Array, in_gpu)] == ["sweep"]
