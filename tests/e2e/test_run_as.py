"""Programs run as who submits them: real accounts, real programs, and what one of them cannot do to another."""

from __future__ import annotations

import json
import os
import signal
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.app.entrance.submitters import accounts_of
from holdfast.app.settings import Settings
from holdfast.client import Client
from holdfast.errors import InvalidSetting, Refused, Unauthenticated
from tests.e2e.people import Machine, gone, machine, made
from tests.e2e.server import Server, until, wait_until
from tests.e2e.test_strangers import Caller, caller

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["caller"]
pytestmark = pytest.mark.as_people_do  # servers of other accounts
WHO = "id -un; id -Gn; echo $HOME $USER $LOGNAME $SHELL; umask; grep NoNewPrivs: /proc/self/status"
READS = 'for f in {files}; do cat "$f" > /dev/null 2>&1 && echo "can read $f"; done'
SIGNALS = 'for p in {pids}; do kill -CONT "$p" 2> /dev/null && echo "can signal $p"; done'


@pytest.fixture(scope="module")
def people() -> Iterator[Machine]:
    yield from machine()


def test_each_program_runs_as_who_submits_it_and_roots_as_root(people: Machine) -> None:
    for person in (people.ann, people.bob):
        names, home = person.name, f"/home/{person.name} {person.name} {person.name} /bin/sh"
        assert person.wrote("who", WHO).splitlines() == [names, names, home, "0022", "NoNewPrivs:\t1"]
    with people.server.client() as root:
        job = root.submit({"name": "root", "shell": "id -un; echo $HOME"}).id
        until(root, job, lambda view: view.state == "Succeeded")
        assert root.logs(job).text == "root\n/root\n"
        assert {one.submitted_by for one in root.jobs(name="who")} == {people.ann.name, people.bob.name}


@pytest.mark.slow
def test_a_program_finds_its_own_directory_and_checkpoints_again_on_its_next_attempt(people: Machine) -> None:
    line = (
        "cd $HOLDFAST_CHECKPOINT_DIR && echo $HOLDFAST_ATTEMPT >> seen && cat seen; cd - && test $HOLDFAST_ATTEMPT = 2"
    )
    policy = {"rules": [{"name": "again", "action": "Retry", "onExitCodes": {"operator": "In", "values": [1]}}]}
    wrote = people.ann.wrote("again", line, retry={"retryLimit": 1, **policy}).splitlines()
    assert wrote[:2] == ["1", "2"]
    assert wrote[2].endswith("/2.0/work")


def test_an_account_cannot_read_or_signal_what_is_anothers_or_the_servers(people: Machine) -> None:
    data, ann = people.server.data, people.ann
    line = "echo secret words; echo saved > $HOLDFAST_CHECKPOINT_DIR/state; echo $$ > pid; exec sleep 1000"
    job = ann.submit("private", line, env={"KEY": "hunter2"})
    folder = data / "runs" / "jobs" / job
    with people.server.client() as root:
        until(root, job, lambda view: view.state == "Running")
        wait_until((folder / "1.0" / "work" / "pid").exists, "a program that has saved something")
        [program] = [one for one in people.server.programs() if one.name() == "sleep"]
        holders = people.server.holders()
        assert people.server.process is not None
        ours = [people.server.process.pid, *(one.pid for one in holders)]
        pids = [program.pid, *ours]
        files = [folder / "1.0" / "log", folder / "checkpoints" / "state", folder / "1.0" / "work" / "pid"]
        files += [
            data / name
            for name in ("holdfast.db", "holdfast.db-wal", "token", "server.json", "lock", "runs/shim.journal")
        ]
        files += [path for pid in pids for path in (Path(f"/proc/{pid}/environ"), Path(f"/proc/{pid}/mem"))]
        assert all(os.access(file, os.R_OK) for file in files), "root can"
        look = "; ".join(
            (
                READS.format(files=" ".join(map(str, files))),
                SIGNALS.format(pids=" ".join(map(str, pids))),
                "echo looked",
            )
        )
        assert people.bob.wrote("curious", look) == "looked\n"
        own = READS.format(files=f"{files[0]} {files[1]} /proc/{program.pid}/environ")
        assert len(ann.wrote("own", own).splitlines()) == 3, "its own account can"
        assert ann.wrote("brave", f"{SIGNALS.format(pids=' '.join(map(str, ours)))}; echo looked") == "looked\n"
        root.cancel(job)
        until(root, job, lambda view: view.state == "Cancelled")
    assert stat.S_IMODE(data.stat().st_mode) == 0o711
    assert stat.S_IMODE((folder / "1.0").stat().st_mode) == 0o700


@pytest.mark.parametrize("link", [os.link, os.symlink], ids=["hard", "symbolic"])
def test_links_that_a_program_leaves_in_place_of_its_files_lead_nowhere(people: Machine, link: object) -> None:
    data, ann = people.server.data, people.ann
    secret = data / f"secret-{link.__name__}"  # type: ignore[attr-defined]
    secret.write_text("hunter2\n")
    secret.chmod(0o600)
    gate = "until test -e go; do sleep 0.05; done; cat log ../log; exit 3"
    job = ann.submit("linked", gate)
    run = data / "runs" / "jobs" / job / "1.0"
    with people.server.client() as root:
        until(root, job, lambda view: view.state == "Running")
        for name in ("log", "termination", "progress", "times"):
            (run / name).unlink(missing_ok=True)
            link(secret, run / name)  # type: ignore[operator] # as root, which may where the account may not
        (run / "work" / "go").touch()
        ended = until(root, job, lambda view: view.state == "Failed")
        assert root.logs(job).text == ""
        told = [ended.model_dump_json(), root.why(job).model_dump_json(), people.server.log.read_text()]
        assert [one for one in told if "hunter2" in one] == []
    assert secret.read_text() == "hunter2\n"


@pytest.mark.slow
def test_nobody_is_given_anothers_checkpoints_or_secrets(people: Machine) -> None:
    with people.server.client() as root:
        root.put_settings({"othersSee": "everything"})  # else nobody could run it again
    saves = "ls $HOLDFAST_CHECKPOINT_DIR; touch $HOLDFAST_CHECKPOINT_DIR/state; false"
    for person, found in ((people.bob, ""), (people.ann, "state\n")):
        sweep = {"name": f"sweep-{person.name[3:6]}", "shell": saves, "array": {"indices": "0"}}
        said = people.ann.run("submit", "--wait", "-f", "-", text=json.dumps(sweep))
        assert said.returncode == 1, said.stderr
        again = person.run("rerun", str(sweep["name"]), "--failed")
        assert again.returncode == 0, again.stderr
        person.run("wait", f"array/{sweep['name']}-rerun-1")
        assert person.run("logs", f"{sweep['name']}-rerun-1-0").stdout == found, person.name
    with people.server.client() as root:
        kept = root.keep_secret("of root alone")
    wanted = {"KEY": {"secret": kept}}
    thief = json.dumps({"name": "thief", "shell": "echo $KEY", "env": wanted})
    said = people.bob.run("submit", "-f", "-", text=thief)
    assert (said.returncode, f"secret '{kept}' is neither" in said.stderr) == (4, True), said.stderr
    (people.server.data / "secrets" / kept).chmod(0o604)
    assert people.bob.wrote("let", "echo $KEY", env=wanted) == "of root alone\n", "the file's mode says who may have it"


def is_known(client: Client) -> bool:
    with suppress(Unauthenticated):
        return client.version().api == "v1"
    return False


@pytest.mark.slow
def test_by_a_token_programs_run_as_its_users_account_or_the_one_named_for_it_and_never_as_root(
    people: Machine,
) -> None:
    def submitted(user: str) -> str:
        made = people.server.json("token", "create", f"of-{user.partition(':')[0]}", "--user", user, "--role", "user")
        with Client(str(people.server.address()["url"]), made["token"]) as client:
            wait_until(lambda: is_known(client), "a token that is known")
            job = client.submit({"name": "by-token", "shell": "id -un"}).id
            until(client, job, lambda view: view.state == "Succeeded")
            return client.logs(job).text

    with people.server.client() as root:
        root.put_settings({"access": {"user": ["user:door:ci", "user:other:x"]}})
    assert submitted(people.ann.name) == f"{people.ann.name}\n"
    assert submitted("door:ci") == f"{people.bob.name}\n"
    with pytest.raises(Refused, match="programs run as their submitter here, and other:x has no Unix account"):
        submitted("other:x")
    with pytest.raises(Refused, match="as root only what root itself submits, without a token"):
        submitted("root")


@pytest.mark.slow
def test_an_account_that_is_gone_or_another_by_now_fails_the_run_with_the_reason(people: Machine) -> None:
    name = f"hf-eve-{os.getpid()}"
    made(name)
    eve = type(people.ann)(name, people.ann.socket)
    try:
        with people.server.client() as root:
            blocker = root.submit({"name": "blocker", "shell": "sleep 1000", "resources": {"cpu": 4}}).id
            until(root, blocker, lambda view: view.state == "Running")
            lost, other = eve.submit("lost", "true"), eve.submit("other", "true", priority=1)
            had = eve.uid
            gone(name)
            made(f"{name}x")  # which gets the number
            made(name)
            assert eve.uid != had
            root.hold(lost)
            root.cancel(blocker)
            ended = until(root, other, lambda view: view.state == "Failed")
            assert f"the account '{name}' has number {eve.uid}" in ended.reason
            gone(name)
            root.release(lost)
            assert f"there is no account '{name}'" in until(root, lost, lambda view: view.state == "Failed").reason
    finally:
        gone(name)
        gone(f"{name}x")


@pytest.mark.slow
def test_a_server_that_is_killed_leaves_programs_to_their_accounts_and_takes_them_over(people: Machine) -> None:
    job = people.ann.submit("stays", "echo before; until test -e go; do sleep 0.05; done; id -un; exit 5")
    with people.server.client() as root:
        until(root, job, lambda view: view.state == "Running")
    people.server.shim().kill()
    people.server.end(signal.SIGKILL)
    for supervisor in people.server.holders("holdfast-run"):
        supervisor.kill()
    people.server.start().close()
    work = people.server.data / "runs" / "jobs" / job / "1.0" / "work"
    (work / "go").touch()
    with people.server.client() as root:
        ended = until(root, job, lambda view: view.state in {"Failed", "Held"})
        assert root.logs(job).text == f"before\n{people.ann.name}\n", ended


def test_an_ordinary_user_is_told_why_programs_cannot_run_as_others(caller: Caller) -> None:
    refused = caller.run("up", "--port", "0", "--run-as", "submitter")
    assert refused.returncode == 4, refused
    assert "only a server that runs as root can run programs as their submitters" in refused.stderr


@pytest.mark.slow
def test_what_accounts_left_in_a_database_runs_as_nobody_else_wherever_that_is_restored(people: Machine) -> None:
    copy, other = people.server.folder / "copy.db", Server(people.server.folder / "elsewhere")
    other.folder.mkdir()
    assert people.server.run("db", "pause").returncode == 0
    job = people.ann.submit("waits", "id -un")
    assert people.server.run("db", "backup", str(copy)).returncode == 0
    assert people.server.run("db", "resume").returncode == 0
    assert other.run("db", "restore", "--resume", str(copy)).returncode == 0
    served = ("up", "--port", "0")
    for words in (served, (*served, "--run-as", "self"), ("run", "--", "true"), ("wait", job)):
        refused = other.run(*words)
        assert (refused.returncode, people.ann.name in refused.stderr) == (4, True), refused.stderr
        assert "--run-as submitter" in refused.stderr
    other.words = (*other.words, "--run-as", "submitter")
    try:
        with other.start() as client:
            until(client, job, lambda view: view.state == "Succeeded")
            assert client.logs(job).text == f"{people.ann.name}\n"
    finally:
        other.clean_up()


def test_programs_of_others_need_a_way_to_the_data_and_accounts_that_are_not_root(
    people: Machine, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match="is closed to other accounts"):
        accounts_of(Settings(data=tmp_path / "data", run_as="submitter"))
    wanted = {"oidc:a": "root", "oidc:b": people.ann.name, "oidc:c": "no-such-account"}
    with pytest.raises(InvalidSetting) as caught:
        accounts_of(Settings(data=people.server.data, run_as="submitter", accounts=wanted))
    assert [problem.message.partition(",")[0] for problem in caught.value.problems] == [
        "'oidc:a' cannot run as root: only root itself can",
        "there is no account 'no-such-account' for 'oidc:c'",
    ]


def test_root_alone_can_start_a_server_for_all(server: Server) -> None:
    server.environ = {**server.environ, "HOLDFAST_RUN_AS": "everybody"}
    refused = server.run("up", "--port", "0")
    assert (refused.returncode, "HOLDFAST_RUN_AS: Input should be 'self' or 'submitter'" in refused.stderr) == (2, True)
