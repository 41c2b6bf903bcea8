"""A plugin of pytest: has coverage tell apart which test runs a line, and notes how long each took."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from coverage import Coverage

if TYPE_CHECKING:
    from collections.abc import Generator

NOTES = "--notes-of-tests"
"""The option that names the file for what each test took."""
LIMIT = "--limit-of-tests"
"""The option for how many seconds they may take: those that have no turn are left out."""
SETUP = " (setup)"
"""At the end of a context: what ran before the test itself, maybe for others, too."""
_took_s: defaultdict[str, float] = defaultdict(float)
_sound: set[str] = set()
_BEGAN = time.monotonic()


def _switch(context: str) -> None:
    running = Coverage.current()
    if running is not None:
        running.switch_context(context)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take where to write, and for how long to run."""
    parser.addoption(NOTES, type=Path, required=True)
    parser.addoption(LIMIT, type=float, required=True)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Count what a file runs before its tests: cases may be made there."""
    _switch(collector.nodeid + SETUP)
    report = yield
    _switch("")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Count what fixtures run."""
    _switch(item.nodeid + SETUP)
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Count what the test runs."""
    _switch(item.nodeid)
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Count no longer, and stop when the time is over."""
    _switch("")
    if time.monotonic() - _BEGAN > item.config.getoption(LIMIT):
        item.session.shouldstop = "the time is over"
    yield


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long it took, and whether it passed."""
    _took_s[report.nodeid] += report.duration
    if report.when == "call" and report.passed:
        _sound.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write it down, and whether every test had its turn."""
    took = {name: round(took_s, 3) for name, took_s in _took_s.items() if name in _sound}
    notes: Path = session.config.getoption(NOTES)
    notes.write_text(json.dumps([took, not session.shouldstop]))
