"""What a program learns of the run it is in, and what it can say about itself."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

import holdfast
from holdfast.sdk.calls.context import _noted_stop
from holdfast.sdk.calls.naming import class_name
from holdfast.sdk.calls.outcome import CallError, of_error, of_value, read_outcome, write_outcome

if TYPE_CHECKING:
    from pathlib import Path

MOST = 1 << 20


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> holdfast.Run:
    (tmp_path / "checkpoints").mkdir()
    values = {
        "JOB_ID": "01abc",
        "JOB_NAME": "train",
        "ATTEMPT": "2",
        "RANK": "1",
        "SIZE": "4",
        "ATTEMPT_UID": "01abc-2-1-1",
        "TERMINATION_LOG": str(tmp_path / "termination"),
        "PROGRESS_FILE": str(tmp_path / "progress"),
        "CHECKPOINT_DIR": str(tmp_path / "checkpoints"),
    }
    for name, value in values.items():
        monkeypatch.setenv(f"HOLDFAST_{name}", value)
    monkeypatch.delenv("JOB_COMPLETION_INDEX", raising=False)
    return holdfast.current()


def test_a_run_knows_who_it_is(run: holdfast.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (run.job_id, run.job_name, run.attempt, run.rank, run.size, run.index) == ("01abc", "train", 2, 1, 4, 1)
    assert run.checkpoint_dir == tmp_path / "checkpoints"
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "7")
    assert holdfast.current().index == 7
    monkeypatch.setenv("HOLDFAST_ARRAY_INDEX", "12")
    assert holdfast.current().index == 12


def test_a_warning_is_known_once_its_file_is_there_and_tells_when_and_why(
    run: holdfast.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (run.warning(), run.stop_at) == (None, None)
    monkeypatch.setenv("HOLDFAST_STOP_AT", "1790000000.5")
    monkeypatch.setenv("HOLDFAST_STOP_FILE", str(tmp_path / "stop"))
    run = holdfast.current()
    assert (run.warning(), run.stop_at) == (None, 1790000000.5)
    (tmp_path / "stop").write_text('{"reason": "preemption", "stop_at": 1780000000.0, "given_at": 1}')
    warned = run.warning()
    assert warned is not None
    assert (warned.reason, run.stop_at) == ("preemption", 1780000000.0)


@pytest.mark.parametrize(("variable", "code"), [(None, 1), ("99", 99)])
def test_a_run_that_saved_ends_with_the_code_its_job_says(
    run: holdfast.Run, monkeypatch: pytest.MonkeyPatch, variable: str | None, code: int
) -> None:
    if variable is not None:
        monkeypatch.setenv("HOLDFAST_CHECKPOINTED_EXIT_CODE", variable)
        run = holdfast.current()
    with pytest.raises(SystemExit) as ended:
        run.checkpointed()
    assert ended.value.code == code


def test_outside_of_a_run_it_is_said_how_to_get_into_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_RANK", raising=False)
    with pytest.raises(LookupError, match="holdfast run"):
        holdfast.current()


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ((37, 100), "37/100"),
        ((0.5,), "0.5"),
        ((1_000_000, 2_000_000, "loss 0.3"), "1000000/2000000 loss 0.3"),
        (("warming\nup",), "warming up"),
    ],
)
def test_progress_is_one_line(run: holdfast.Run, said: tuple[int, int, str], line: str) -> None:
    run.progress("something longer that was said before")
    run.progress(*said)
    assert run.progress_file.read_text() == f"{line}\n"
    assert [path.name for path in run.progress_file.parent.glob("progress*")] == ["progress"]


@pytest.mark.parametrize(
    ("retryable", "code", "said"),
    [(None, 1, "no data"), (True, 75, "no data\n[retryable]"), (False, 70, "no data\n[not retryable]")],
)
def test_a_run_that_fails_says_whether_to_try_again(
    run: holdfast.Run, *, retryable: bool | None, code: int, said: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        run.fail("no data", retryable=retryable)
    assert caught.value.code == code
    assert run.termination_log.read_text() == said


def test_a_long_message_is_cut_and_its_last_line_kept(run: holdfast.Run) -> None:
    with pytest.raises(holdfast.RunFailed):
        run.fail("é" * 5000, retryable=False)
    written = run.termination_log.read_bytes()
    assert len(written) <= 4096
    assert written.decode().endswith("é\n[not retryable]")


def test_a_tracker_finds_one_name_for_all_attempts_of_a_rank(
    run: holdfast.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_RUN_ID", raising=False)
    monkeypatch.setenv("WANDB_RESUME", "must")
    run.track()
    assert run.tracking_id == "01abc-1"
    assert (os.environ["WANDB_RUN_ID"], os.environ["WANDB_RESUME"]) == ("01abc-1", "must")
    monkeypatch.setenv("HOLDFAST_RANK", "0")
    monkeypatch.setenv("HOLDFAST_SIZE", "1")
    assert holdfast.current().tracking_id == "01abc"


def test_being_told_to_stop_is_noted_from_the_first_question_on(run: holdfast.Run) -> None:
    before = signal.getsignal(signal.SIGTERM)
    heard = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: heard.set())
    try:
        assert not run.should_stop()
        os.kill(os.getpid(), signal.SIGTERM)
        assert run.should_stop()
        assert heard.is_set(), "what was there before is told, too"
    finally:
        signal.signal(signal.SIGTERM, before)
        _noted_stop.cache_clear()


def test_the_first_question_in_another_thread_is_refused(run: holdfast.Run) -> None:
    caught: list[str] = []

    def ask() -> None:
        with pytest.raises(RuntimeError) as error:
            run.should_stop()
        caught.append(str(error.value))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert "in the main thread" in caught[0]


class Unpicklable(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def test_an_outcome_comes_back_as_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "outcome.1.0")
    assert read_outcome(path) is None
    write_outcome(path, of_value({"loss": 0.5}, MOST))
    found = read_outcome(path)
    assert found is not None
    assert found.value() == {"loss": 0.5}


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ValueError("bad"), ValueError, "bad"),
        (Unpicklable("a", "b"), CallError, "Unpicklable: ab"),
        (SystemExit(3), CallError, "SystemExit: 3"),
        (KeyboardInterrupt(), CallError, "KeyboardInterrupt"),
    ],
)
def test_an_exception_comes_back_itself_or_in_words(
    tmp_path: Path, error: BaseException, kind: type[Exception], words: str
) -> None:
    write_outcome(str(tmp_path / "outcome"), of_error(error, MOST))
    found = read_outcome(str(tmp_path / "outcome"))
    assert found is not None
    with pytest.raises(kind, match=words) as caught:
        found.value()
    assert words in str(caught.value.__cause__)


def test_a_result_that_is_too_large_is_refused_with_its_size() -> None:
    with pytest.raises(ValueError, match=r"takes \d+ bytes, and 10 are allowed"):
        of_value("x" * 100, 10)


def test_a_class_is_named_as_tracebacks_do() -> None:
    assert class_name(ValueError) == "ValueError"
    assert class_name(Unpicklable) == f"{__name__}.Unpicklable"
