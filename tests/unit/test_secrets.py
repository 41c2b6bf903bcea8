"""Secret variables: how jobs name them, where their values are kept, and when they are deleted."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from holdfast.app import wiring
from holdfast.app.data.datadir import DataDir
from holdfast.app.settings import read_settings
from holdfast.client import Client
from holdfast.compiled.codec import dump_spec, load_spec
from holdfast.dialects.native.patch import patched
from holdfast.dialects.native.writing import write_job
from holdfast.domain.access import Principal, Role
from holdfast.domain.job import JobState
from holdfast.domain.record import evolve
from holdfast.engines.process.files import launch_message
from holdfast.errors import InvalidManifest, InvalidRequest, Refused
from holdfast.ports.engine import Container, RunOrder
from holdfast.ports.store import Changes, Submission
from holdfast.service.admission.records import new_job
from holdfast.service.admission.secrets import SPARED_S, kept, sweep
from holdfast.service.submit import Submitter
from holdfast.storage.secrets import SecretFiles
from tests.reading import read_job_mapping
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000.0
TOKEN = {"secret": "hub"}
ANN = Principal("ann", roles=(Role.USER,))


@pytest.fixture
def files(tmp_path: Path) -> SecretFiles:
    return SecretFiles(tmp_path / "data" / "secrets")


class Ids:
    def new(self) -> str:
        return "j1"


class Clock:
    def now(self) -> float:
        return NOW


def test_a_variable_names_its_secret_and_is_written_so() -> None:
    spec = read_job_mapping({"command": ["true"], "env": {"A": "1", "TOKEN": TOKEN}})
    assert (dict(spec.env), dict(spec.secrets)) == ({"A": "1"}, {"TOKEN": "hub"})
    assert load_spec(dump_spec(spec)) == spec
    assert write_job(spec)["env"] == {"A": "1", "TOKEN": TOKEN}
    assert read_job_mapping(write_job(spec)) == spec


@pytest.mark.parametrize(
    ("env", "path", "said"),
    [
        ({"TOKEN": {"secret": "../server.json"}}, "env.TOKEN.secret", "is not the name of a secret"),
        ({"TOKEN": {"secret": ".."}}, "env.TOKEN.secret", "is not the name of a secret"),
        ({"TOKEN": {}}, "env.TOKEN.secret", "is required"),
        ({"TOKEN": {"secret": "a", "key": "b"}}, "env.TOKEN.key", "unknown field"),
        ({"HOLDFAST_TOKEN": TOKEN}, "env.HOLDFAST_TOKEN", "are set by Holdfast itself"),
        ({"A B": TOKEN}, "env.A B", "is not a variable name"),
    ],
)
def test_a_secret_that_is_named_badly_is_refused(env: dict[str, object], path: str, said: str) -> None:
    with pytest.raises(InvalidManifest) as raised:
        read_job_mapping({"command": ["true"], "env": env})
    [problem] = raised.value.problems
    assert (problem.path, said in problem.message) == (path, True)


def test_a_retry_with_changes_keeps_secrets_and_may_replace_them() -> None:
    spec = read_job_mapping({"command": ["true"], "env": {"A": "1", "TOKEN": TOKEN, "KEY": {"secret": "key"}}})
    changed = patched(spec, {"env": {"A": "2", "KEY": "plain", "NEW": {"secret": "new"}}})
    assert dict(changed.env) == {"A": "2", "KEY": "plain"}
    assert dict(changed.secrets) == {"TOKEN": "hub", "NEW": "new"}


def test_what_is_kept_can_be_read_by_its_owner_only_and_is_exact(files: SecretFiles, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        name = files.keep("two\nlines\n")
    finally:
        os.umask(before)
    folder = tmp_path / "data" / "secrets"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / name)] == [0o700, 0o600]
    assert files.value(name) == "two\nlines\n"
    (folder / "hub").write_text("by hand\n")
    assert files.value("hub") == "by hand"
    assert files.value("none") is None
    assert files.refresh(["hub", name, "none"]) == {"hub", name}


@pytest.mark.parametrize("value", ["", "a\0b", "\ud800", "x" * 65_537])
def test_what_no_variable_can_hold_is_refused_and_not_repeated(files: SecretFiles, value: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        kept(value, files, ANN)
    assert not value or value not in str(raised.value.problems)


def test_a_job_is_refused_whose_secret_is_not_there(files: SecretFiles) -> None:
    spec = read_job_mapping({"command": ["true"], "env": {"TOKEN": TOKEN}})
    for where, hint in ((files, "--secret-env"), (None, "HOLDFAST_SECRETS")):
        with pytest.raises(InvalidManifest) as raised:
            Submitter(MemoryStore(), Clock(), Ids(), secrets=where).submit(spec)
        [problem] = raised.value.problems
        assert (problem.path, problem.message) == ("spec.env.TOKEN.secret", "there is no secret 'hub'")
        assert hint in str(problem.hint)


def test_secrets_are_deleted_with_the_last_job_that_names_them_and_an_hour_after_nobody_came(
    files: SecretFiles, tmp_path: Path
) -> None:
    store, folder = MemoryStore(), tmp_path / "data" / "secrets"
    of_job, orphan, young = (files.keep(value) for value in ("one", "two", "three"))
    (folder / "by-hand").write_text("four")
    spec = read_job_mapping({"command": ["true"], "env": {"TOKEN": {"secret": of_job}}})
    job = new_job(spec, "j1", NOW)
    store.submit(Submission([job], {}, None, ""))
    for name in (of_job, orphan, "by-hand"):
        os.utime(folder / name, (NOW - SPARED_S - 1,) * 2)
    os.utime(folder / young, (NOW - SPARED_S + 1,) * 2)
    assert sweep(files, store, NOW) == 1
    assert {path.stem for path in folder.iterdir()} == {of_job, young, "by-hand"}
    store.commit(Changes(jobs={"j1": evolve(job, state=JobState.SUCCEEDED, ended_at=NOW)}))
    assert store.delete_finished(["j1"]) == 1
    assert sweep(files, store, NOW) == 1
    assert {path.stem for path in folder.iterdir()} == {young, "by-hand"}


def test_a_secret_that_a_job_is_about_to_use_is_fresh_again(files: SecretFiles, tmp_path: Path) -> None:
    name = files.keep("value")
    os.utime(tmp_path / "data" / "secrets" / name, (1.0, 1.0))
    assert list(files.kept(before=2.0)) == [name]
    assert files.refresh([name]) == {name}
    assert files.kept(before=2.0) == []


def test_an_order_names_secrets_and_only_what_starts_the_program_has_their_values(tmp_path: Path) -> None:
    main = Container(command=("true",), env={"A": "1"}, secrets={"TOKEN": "hub", "KEY": "gone"})
    order = RunOrder(uid="j-1-0-1", job_id="j", job_name="j", attempt=1, rank=0, size=1, containers=(main,))
    assert "v4lue" not in repr(order)
    message = launch_message(tmp_path, order, (), lambda name, _: {"hub": "v4lue"}.get(name))
    assert (message["env"]["TOKEN"], "KEY" in message["env"], message["missing"]) == ("v4lue", False, ["gone"])


@pytest.mark.parametrize("url", ["http://10.1.2.3:7070", "http://holdfast.example.org"])
def test_a_secret_does_not_leave_the_machine_in_clear(url: str) -> None:
    with Client(url, "token") as client, pytest.raises(Refused, match="not sent to"):
        client.keep_secret("v4lue")


def test_servers_that_share_a_database_keep_secrets_only_where_the_operator_says(tmp_path: Path) -> None:
    directory = DataDir(tmp_path)
    shared = "postgresql://db.example.org/holdfast"
    assert wiring.secrets(read_settings(data=tmp_path), directory) is not None
    assert wiring.secrets(read_settings(data=tmp_path, database=shared), directory) is None
    assert wiring.secrets(read_settings(data=tmp_path, database=shared, secrets=tmp_path / "s"), directory) is not None
    with pytest.raises(Refused, match="keeps no secrets"):
        kept("value", None, ANN)
