"""What reaches the log: the error and where it was, never the values of variables."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import pytest

from holdfast.app import log

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = logging.getLogger("holdfast.test")


@pytest.fixture(autouse=True)
def unconfigured() -> Iterator[None]:
    yield
    logging.getLogger("holdfast").handlers.clear()
    logging.getLogger("holdfast").setLevel(logging.NOTSET)


def _fail() -> None:
    token = "s3cr3t-token"  # noqa: S105 - the point of the test
    msg = f"a token of {len(token)} characters was refused"
    raise ValueError(msg)


def test_a_logged_error_shows_no_local_variable(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info")
    try:
        _fail()
    except ValueError:
        LOG.exception("a step of %s failed", "x")
    shown = capsys.readouterr().err
    assert "a step of x failed" in shown
    assert "a token of 12 characters was refused" in shown
    assert shown.count("s3cr3t-token") == shown.count('token = "s3cr3t-token"')
    assert "locals" not in shown.lower()


def test_events_below_the_level_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("warning")
    LOG.info("quiet")
    LOG.warning("loud")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \[WARNING\] loud\n", capsys.readouterr().err)


def test_a_log_that_is_configured_again_says_everything_once(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("warning")
    log.configure("info")
    LOG.info("once")
    assert capsys.readouterr().err.count("once") == 1
