"""What records are made of, and that many threads read them, from the first one on."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import subprocess
import sys

import pytest

import holdfast
from holdfast.compiled.records import dump_record, load_record
from holdfast.domain.failure import ContainerResult, RunOutcome
from holdfast.domain.job import Resources
from holdfast.domain.record import Struct, evolve

THREADS = """
import sys
from enum import StrEnum
from threading import Barrier, Thread

from msgspec import defstruct, field

from holdfast.compiled.records import decoder_of

sys.setswitchinterval(1e-6)


def read(kind, together):
    together.wait()
    decoder_of(kind).decode('{"shared": {"f0": "1", "f4": "2"}}')


for _ in range(15):
    words = [StrEnum(f"Word{n}", {f"W{m}": str(m) for m in range(4)}) for n in range(5)]
    shared = defstruct("Shared", [(f"f{n}", word | None, None) for n, word in enumerate(words)])
    outer = [defstruct(f"Outer{n}", [("shared", shared, field(default_factory=shared))]) for n in range(6)]
    together = Barrier(len(outer))
    threads = [Thread(target=read, args=(kind, together)) for kind in outer]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_that_read_kinds_of_records_for_the_first_time_do_not_end_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], check=False, timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def kinds(of: type[Struct]) -> list[type[Struct]]:
    return [each for kind in of.__subclasses__() for each in (kind, *kinds(kind))]


def test_the_collector_looks_only_at_records_that_can_be_in_a_cycle() -> None:
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        # Integrations need the libraries that they are for, which are installed where these are tested. The
        # actors of Fluster are a module that says there are none.
        apart = {"__main__", "migrations", "integrations", "actor"}
        if not apart & {*module.name.split(".")}:
            importlib.import_module(module.name)
    ours = [kind for kind in kinds(Struct) if kind.__module__.startswith("holdfast.")]
    assert len(ours) > 200
    changing = {kind.__qualname__ for kind in ours if not kind.__struct_config__.frozen}
    looked_at = {kind.__qualname__ for kind in ours if kind.__struct_config__.gc}
    assert (changing - looked_at, looked_at - changing) == (set(), {"JobSetSpec"})
    assert not gc.is_tracked(RunOutcome((ContainerResult(0),)))


def test_a_copy_takes_known_fields_only_and_leaves_the_original() -> None:
    before = Resources(1, 2, 3)
    assert (evolve(before, memory=5), before) == (Resources(1, 5, 3), Resources(1, 2, 3))
    with pytest.raises(TypeError):
        evolve(before, disk=1)  # type: ignore[call-arg]


def test_what_has_its_default_is_not_written() -> None:
    outcome = RunOutcome((ContainerResult(3),), ended_at=2.0)
    text = dump_record(outcome)
    assert text == '{"containers":[{"exit_code":3}],"ended_at":2.0}'
    assert load_record(RunOutcome, text) == outcome
