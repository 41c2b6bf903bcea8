"""What reaches the log: the error and where it was, never the values of variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from holdfast.app import logging

if TYPE_CHECKING:
    import pytest


def _fail() -> None:
    token = "s3cr3t-token"  # noqa: S105 - the point of the test
    msg = f"a token of {len(token)} characters was refused"
    raise ValueError(msg)


def test_a_logged_error_shows_no_local_variable(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure("info")
    try:
        _fail()
    except ValueError:
        structlog.get_logger("test").exception("step failed", loop="x")
    finally:
        structlog.reset_defaults()
    shown = capsys.readouterr().err
    assert "step failed" in shown
    assert "a token of 12 characters was refused" in shown
    assert shown.count("s3cr3t-token") == shown.count('token = "s3cr3t-token"')
    assert "Locals" not in shown
    assert "locals" not in shown


def test_events_below_the_level_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    logging.configure("warning")
    try:
        structlog.get_logger("test").info("quiet")
        structlog.get_logger("test").warning("loud", job="j")
    finally:
        structlog.reset_defaults()
    shown = capsys.readouterr().err
    assert "quiet" not in shown
    assert "loud" in shown
    assert "job=j" in shown
