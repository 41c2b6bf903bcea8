"""A secret is a user's or a queue's: no other job gets it, when it is submitted or when it starts."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.job import Queue
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import ArraySpec, Indexes
from holdfast.engines.process.files import launch_message
from holdfast.errors import Forbidden, InvalidManifest
from holdfast.ports.engine import Container, RunOrder
from holdfast.ports.secrets import NOBODY, SecretUser
from holdfast.ports.store import JobFilter
from holdfast.service.submit import Submitter, WrittenJob
from holdfast.storage.secrets import SecretFiles
from tests.reading import read_job_mapping
from tests.unit.conftest import VirtualClock
from tests.unit.jobset_service import Counting
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

OWN = pwd.getpwuid(os.geteuid()).pw_name
ANN, BOB = SecretUser("ann", 1001, "ml"), SecretUser("bob", 1002, "ml")


@pytest.fixture
def files(tmp_path: Path) -> SecretFiles:
    return SecretFiles(tmp_path)


@pytest.mark.parametrize(
    ("owner", "user", "opened"),
    [
        ("user:ann", ANN, True),
        ("user:ann\n", ANN, True),
        ("user:ann 1001", ANN, True),
        ("user:ann 1001", evolve(ANN, uid=None), True),
        ("user:ann 999", ANN, False),  # an account that was made again is somebody else
        ("user:ann", BOB, False),
        ("user:an", ANN, False),
        ("queue:ml", BOB, True),
        ("queue:ml", evolve(BOB, queue="other"), False),
        ("queue:", evolve(BOB, queue=""), False),
        (f"user:{OWN}", NOBODY, True),
        ("ann", ANN, False),
        ("", ANN, False),
        ("group:lab", ANN, False),
        ("\udcff", ANN, False),
        (None, ANN, False),
        (None, NOBODY, True),
        (None, SecretUser(OWN), True),
    ],
)
def test_whose_a_secret_is_stands_beside_it(
    files: SecretFiles, tmp_path: Path, owner: str | None, user: SecretUser, *, opened: bool
) -> None:
    (tmp_path / "hub").write_text("v4lue\n")
    if owner is not None:
        (tmp_path / "hub.owner").write_bytes(owner.encode("utf-8", "surrogateescape"))
    assert files.opens("hub", user) is opened
    assert files.value("hub", user) == ("v4lue" if opened else None)


def test_what_somebody_sent_is_theirs_alone_and_goes_with_its_owners_name(files: SecretFiles, tmp_path: Path) -> None:
    name = files.keep("v4lue", evolve(ANN, uid=None))
    assert [files.value(name, user) for user in (ANN, BOB, NOBODY)] == ["v4lue", None, None]
    assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}.owner"}
    assert [*files.kept(before=2e12)] == [name]
    files.discard(name)
    assert not [*tmp_path.iterdir()]


def test_an_owners_name_whose_secret_never_came_is_swept(files: SecretFiles, tmp_path: Path) -> None:
    name = files.keep("v4lue", evolve(ANN, uid=None))
    (tmp_path / name).unlink()
    assert [*files.kept(before=2e12)] == [name]
    files.discard(name)
    assert not [*tmp_path.iterdir()]


def test_what_was_sent_before_owners_were_written_down_is_given_to_who_knows_its_name(
    files: SecretFiles, tmp_path: Path
) -> None:
    name = f"job-{'ab' * 12}"
    (tmp_path / name).write_text("v4lue")
    assert files.value(name, BOB) == "v4lue"


def test_one_that_is_being_replaced_is_given_to_nobody(
    files: SecretFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hub").write_text("bobs")
    owners = iter(["user:ann", "user:bob"])
    monkeypatch.setattr(SecretFiles, "_owner", lambda *_: next(owners))
    assert files.value("hub", ANN) is None


def test_where_programs_run_as_accounts_the_mode_of_a_file_gives_it_too(tmp_path: Path) -> None:
    files = SecretFiles(tmp_path, by_accounts=True)
    (tmp_path / "hub").write_text("v4lue")
    for mode, opened in ((0o600, False), (0o604, True)):
        (tmp_path / "hub").chmod(mode)
        assert files.opens("hub", SecretUser("bob", 54321)) is opened
    (tmp_path / "hub").chmod(0o600)
    (tmp_path / "hub.owner").write_text("queue:ml")
    assert files.opens("hub", SecretUser("bob", 54321, "ml"))


def submitter(files: SecretFiles, store: MemoryStore, name: str) -> Submitter:
    caller = Caller(Principal(name, roles=(Role.USER,)), 1.0)
    return Submitter(store, VirtualClock(), Counting(), secrets=files, caller=caller)


def test_a_job_that_names_anothers_secret_is_refused_whatever_it_is(files: SecretFiles) -> None:
    store = MemoryStore()
    store.put_entry(Queue("ml"))
    hers = files.keep("v4lue", evolve(ANN, uid=None))
    spec = read_job_mapping({"command": ["true"], "queue": "ml", "env": {"KEY": {"secret": hers}}})
    array = WrittenJob(spec, array=ArraySpec(spec, (Indexes(0, 3),)))
    bob, ann = submitter(files, store, "bob"), submitter(files, store, "ann")
    for attempt in (spec, evolve(spec, gang=2)):
        with pytest.raises(Forbidden, match="names secrets that it may not use") as caught:
            bob.submit(attempt)
        [problem] = caught.value.problems
        assert (problem.path, problem.message) == (
            "spec.env.KEY.secret",
            f"secret {hers!r} is neither bob's nor queue ml's",
        )
    with pytest.raises(Forbidden):
        bob.submit_array(array)
    with pytest.raises(InvalidManifest, match="nothing was submitted"):
        bob.submit_many([evolve(spec, secrets={}), spec])
    with pytest.raises(Forbidden):
        bob.check_many([spec])
    assert not store.jobs(JobFilter())
    ann.submit(spec)
    ann.submit_array(array)


def test_a_queues_secret_is_for_the_jobs_of_that_queue(files: SecretFiles, tmp_path: Path) -> None:
    store = MemoryStore()
    store.put_entry(Queue("ml"))
    (tmp_path / "hub").write_text("v4lue")
    (tmp_path / "hub.owner").write_text("queue:ml")
    bob = submitter(files, store, "bob")
    env = {"KEY": {"secret": "hub"}}
    bob.submit(read_job_mapping({"command": ["true"], "queue": "ml", "env": env}))
    with pytest.raises(Forbidden, match="may not use"):
        bob.submit(read_job_mapping({"command": ["true"], "env": env}))


def test_a_run_gets_what_is_its_submitters_when_it_starts(files: SecretFiles, tmp_path: Path) -> None:
    (tmp_path / "hub").write_text("hers")
    (tmp_path / "hub.owner").write_text("user:ann")
    main = Container(command=("true",), secrets={"KEY": "hub"})
    order = RunOrder("j-1-0-1", "j", "j", 1, 0, 1, (main,), queue="ml", submitted_by="ann", submitter_uid=1001)
    message = launch_message(tmp_path, order, (), files.value)
    assert (message["env"]["KEY"], message["missing"]) == ("hers", [])
    (tmp_path / "hub.owner").write_text("user:bob")  # replaced while the job waited
    message = launch_message(tmp_path, order, (), files.value)
    assert ("KEY" in message["env"], message["missing"]) == (False, ["hub"])
