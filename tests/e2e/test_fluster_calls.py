"""Calls by Fluster's door, as its clients pickle them: run in the job's process, with their workspace and packages."""

from __future__ import annotations

import io
import os
import pickle
import socket
import stat
import sys
import textwrap
import zipfile
from typing import TYPE_CHECKING, Any

import cloudpickle
import psutil
import pytest

from holdfast.api.fluster.calls import WORKER
from tests.e2e.fluster_stage import Connected, FlusterServer, cluster
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    index = wheel(tmp_path_factory.mktemp("packages") / "wheels")
    server = FlusterServer(tmp_path_factory.mktemp("door"), HOLDFAST_FLUSTER_INDEX=str(index))
    yield server.open()
    server.clean_up()


def wheel(folder: Path) -> Path:
    """Make a folder of packages that has one: it gives 42."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "answers-1.0-py3-none-any.whl", "w") as file:
        info = "answers-1.0.dist-info"
        file.writestr("answers.py", "GIVEN = 42\n")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: answers\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"answers.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return folder


def workspace(**files: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.py", text)
    return data.getvalue()


def called(source: str, **named: object) -> bytes:
    """Pickle a call of a function that is called ``job``, as a client in a notebook does."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(textwrap.dedent(source), space)  # noqa: S102 - of a test
    body: bytes = cloudpickle.dumps((space["job"], (), named))
    return body


def upstream(function: Callable[..., object], *args: object) -> bytes:
    """Pickle an entry point by the name of upstream's class, whose module is not installed here."""
    state = pickle.dumps({"callable": function, "args": args, "kwargs": {}}, protocol=2)
    return b"\x80\x02cfluster.cluster.types\nEntrypoint\n)\x81" + state[2:-1] + b"b."


def launched(
    door: Connected,
    name: str,
    entrypoint: bytes,
    **given: Any,  # noqa: ANN401 - fields of a launch
) -> cluster.JobStatus:
    sent = cluster.Controller.LaunchJobRequest(name=name, serialized_entrypoint=entrypoint, **given)
    sent.resources.cpu, sent.resources.memory = 1, "256m"
    door("LaunchJob", sent)
    return door.ended(name)


def result(door: Connected, name: str) -> Any:  # noqa: ANN401 - whatever was returned
    sent = cluster.Controller.GetJobStatusRequest(job_id=name, include_result=True)
    return pickle.loads(door("GetJobStatus", sent).job.serialized_result)  # noqa: S301 - of this test's own job


def test_a_call_is_made_with_its_arguments_and_its_result_is_read_where_that_is_asked_for(door: Connected) -> None:
    status = launched(door, "adds", called("def job(one, other): return {'sum': one + other}", one=1, other=2))
    assert (status.state, status.serialized_result) == (cluster.JOB_STATE_SUCCEEDED, b"")
    assert result(door, "adds") == {"sum": 3}


def test_an_entry_point_that_upstream_s_clients_pickled_by_name_is_found(door: Connected) -> None:
    assert launched(door, "by name", upstream(os.path.join, "a", "b")).state == cluster.JOB_STATE_SUCCEEDED
    assert result(door, "by name") == "a/b"


def test_what_a_call_raises_is_told_by_type_message_and_traceback(door: Connected) -> None:
    status = launched(door, "raises", called("def job():\n    raise RuntimeError('no luck')"))
    assert (status.state, status.exit_code) == (cluster.JOB_STATE_FAILED, 1)
    assert status.error.startswith("RuntimeError: no luck\nTraceback (most recent call last):")
    exits = launched(door, "exits", called("def job():\n    import sys; sys.exit(3)"))
    assert (exits.state, exits.exit_code) == (cluster.JOB_STATE_FAILED, 3)


def test_what_a_call_prints_need_not_be_text_and_what_it_leaves_running_ends_with_it(door: Connected) -> None:
    source = """
    def job():
        import os, subprocess
        os.write(1, b"\\xff\\xfe half\\n")
        left = subprocess.Popen(["sleep", "1000.03125"], start_new_session=True)
        return left.pid
    """
    assert launched(door, "prints", called(source)).state == cluster.JOB_STATE_SUCCEEDED
    [line] = door("FetchLogs", cluster.Worker.FetchLogsRequest(job_id="prints"), WORKER).logs
    assert line.data == "\ufffd\ufffd half"
    left = result(door, "prints")
    wait_until(lambda: not psutil.pid_exists(left), "the end of what was left running")


def test_what_cannot_be_read_fails_in_the_job_and_harms_nothing_here(door: Connected, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    bomb = b"cposix\nsystem\n(V" + f"echo $FLUSTER_JOB_ID >> {mark}; exit 9".encode() + b"\ntR."
    status = launched(door, "reads", bomb)
    assert status.state == cluster.JOB_STATE_FAILED
    assert "has no attribute 'callable'" in status.error
    assert mark.read_text() == "reads\n", "it was read once, and by the job's process"
    garbled = launched(door, "garbled", b"\x80\x05garbled")
    assert "could not be read by Python" in garbled.error


def test_a_result_is_read_by_who_asked_for_it_alone(door: Connected, tmp_path: Path) -> None:
    source = """
    def job(mark):
        class Result:
            def __reduce__(self):
                import os
                return os.system, (f"echo $FLUSTER_JOB_ID. >> {mark}",)
        return Result()
    """
    mark = tmp_path / "mark"
    assert launched(door, "leaves", called(source, mark=str(mark))).state == cluster.JOB_STATE_SUCCEEDED
    sent = cluster.Controller.GetJobStatusRequest(job_id="leaves", include_result=True)
    assert door("GetJobStatus", sent).job.serialized_result
    assert not mark.exists(), "nothing but the job has read what was sent"
    assert result(door, "leaves") == 0
    assert mark.read_text() == ".\n"


def test_a_run_finds_fluster_s_variables_whatever_it_was_sent_with(door: Connected) -> None:
    source = """
    def job():
        import os
        return {name: value for name, value in os.environ.items() if name.startswith("FLUSTER_")}
    """
    environment = cluster.EnvironmentConfig(
        env_vars={"FLUSTER_JOB_ID": "mine", "FLUSTER_ATTEMPT_ID": "7", "FLUSTER_X": "y"}
    )
    launched(
        door, "tells/me", called(source), environment=environment, ports=["http"], bundle_blob=workspace(a="B = 1")
    )
    told = result(door, "tells/me")
    assert (told["FLUSTER_JOB_ID"], told["FLUSTER_ATTEMPT_ID"], told["FLUSTER_X"]) == ("tells/me", "0", "y")
    assert int(told["FLUSTER_PORT_HTTP"]) > 0
    assert (told["FLUSTER_BIND_HOST"], told["FLUSTER_WORKER_ID"]) == ("127.0.0.1", door.status("tells/me").worker_id)
    child = called("def job():\n    import a\n    return a.B")
    launched(door, "tells/child", child, bundle_gcs_path=told["FLUSTER_BUNDLE_GCS_PATH"])
    assert result(door, "tells/child") == 1


def test_a_script_finds_what_a_call_finds(door: Connected, tmp_path: Path) -> None:
    environment = cluster.EnvironmentConfig(env_vars={"FLUSTER_ATTEMPT_ID": "7", "FLUSTER_X": "y"})
    script = f"#!/bin/sh\nenv | grep ^FLUSTER_ > {tmp_path}/$FLUSTER_ATTEMPT_ID\nexit $((1 - FLUSTER_ATTEMPT_ID))\n"
    retry = cluster.RetryConfig(max_retries_failure=1, initial_retry_delay_ms=1)
    status = launched(
        door, "tells/script", script.encode(), environment=environment, ports=["http", "a-b_c"], retry=retry
    )
    assert (status.state, status.failure_count) == (cluster.JOB_STATE_SUCCEEDED, 1)
    first, told = (
        dict(line.split("=", 1) for line in (tmp_path / attempt).read_text().splitlines()) for attempt in "01"
    )
    assert (first["FLUSTER_ATTEMPT_ID"], told["FLUSTER_ATTEMPT_ID"], told["FLUSTER_X"]) == ("0", "1", "y")
    assert (told["FLUSTER_JOB_ID"], told["FLUSTER_BIND_HOST"]) == ("tells/script", "127.0.0.1")
    assert told["FLUSTER_WORKER_ID"] == status.worker_id
    assert int(told["FLUSTER_PORT_HTTP"]) != int(told["FLUSTER_PORT_A_B_C"])


def test_packages_are_installed_before_the_call_and_from_the_place_that_is_set(door: Connected) -> None:
    source = "def job():\n    import answers, module\n    return answers.GIVEN + module.MORE"
    environment = cluster.EnvironmentConfig(pip_packages=["answers==1.0"])
    bundle = workspace(module="MORE = 1\n")
    status = launched(door, "installs", called(source), environment=environment, bundle_blob=bundle)
    assert status.state == cluster.JOB_STATE_SUCCEEDED, status.error
    assert result(door, "installs") == 43


def test_what_cannot_be_installed_is_not_the_job_s_fault_and_tried_twice_more(door: Connected) -> None:
    environment = cluster.EnvironmentConfig(pip_packages=["no-such-package"])
    retry = cluster.RetryConfig(max_retries_failure=9, initial_retry_delay_ms=1, max_retry_delay_ms=1)
    status = launched(door, "misses", called("def job(): pass"), environment=environment, retry=retry)
    assert (status.state, status.failure_count) == (cluster.JOB_STATE_WORKER_FAILED, 0), status
    assert "its preparation failed: exit code 1" in status.error
    assert "no-such-package" in status.error.partition("its preparation failed: ")[2], "as its last line has it"
    assert len(status.attempts) == 2, "tried three times in all"


@pytest.mark.slow
def test_an_index_that_does_not_answer_costs_a_job_no_more_than_the_time_that_is_set(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        server = FlusterServer(tmp_path, HOLDFAST_FLUSTER_INDEX=index, HOLDFAST_FLUSTER_PREPARE_TIMEOUT="1s")
        try:
            environment = cluster.EnvironmentConfig(pip_packages=["answers"])
            retry = cluster.RetryConfig(initial_retry_delay_ms=1, max_retry_delay_ms=1)
            status = launched(server.open(), "hangs", called("def job(): pass"), environment=environment, retry=retry)
            assert (status.state, len(status.attempts)) == (cluster.JOB_STATE_WORKER_FAILED, 2)
            assert "its preparation took longer than 1 s" in status.error
        finally:
            server.clean_up()


def test_everything_that_is_wrong_with_what_is_sent_along_is_said_at_once(door: Connected) -> None:
    link = zipfile.ZipInfo("x")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(link, "/etc")
        archive.writestr("../y", "")
    sent = cluster.Controller.LaunchJobRequest(name="wrong", serialized_entrypoint=called("def job(): pass"))
    sent.bundle_blob = data.getvalue()
    refused = door.refused("LaunchJob", sent)
    assert (refused.code, refused.paths) == ("invalid_argument", ["bundle_blob['x']", "bundle_blob['../y']"])
    sent = cluster.Controller.LaunchJobRequest(name="wrong", bundle_hash="nothing")
    sent.environment.pip_packages.extend(["--index-url=http://x", "ok"])
    sent.environment.extras.append("-e")
    refused = door.refused("LaunchJob", sent)
    assert {"serialized_entrypoint", "bundle_hash", "environment.pip_packages[0]", "environment.extras[0]"} <= {
        *refused.paths
    }


def test_a_python_that_cannot_make_calls_is_told_at_submission(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    server = FlusterServer(tmp_path / "door", HOLDFAST_FLUSTER_PYTHON=str(bare))
    try:
        sent = cluster.Controller.LaunchJobRequest(name="call", serialized_entrypoint=called("def job(): pass"))
        refused = server.open().refused("LaunchJob", sent)
        assert (refused.code, refused.paths) == ("invalid_argument", ["serialized_entrypoint"])
        assert "No module named 'cloudpickle'" in refused.message
    finally:
        server.clean_up()
