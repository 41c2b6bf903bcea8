"""What tests of every kind share: no variable of the caller's, and one PostgreSQL server, if a test asks for it."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import postgres, strace

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator


for variable in [name for name in os.environ if name.startswith("HOLDFAST_")]:
    del os.environ[variable]  # of whoever runs the tests, before any of them is read
# An example that takes long says that the machine is busy, and nothing about the code.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: ten thousand tests stay, and need not be looked at again while they run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def nobodys_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep tests that name no data directory away from that of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("share")))
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.PostgresServer]:
    """A server of our own; without one on the machine the test is skipped, and says why."""
    binaries = postgres.find_binaries()
    if binaries is None:
        pytest.skip(postgres.ABSENT)
    with postgres.running(binaries) as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: postgres.PostgresServer) -> str:
    """A database at the newest schema and without rows, for one test."""
    return postgres_server.migrated()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say aloud what did not run without PostgreSQL or strace, and how many deaths were died."""
    skipped = terminalreporter.stats.get("skipped", [])
    for absent in (postgres.ABSENT, strace.ABSENT):
        number = sum(absent in str(report.longrepr) for report in skipped)
        if number:
            terminalreporter.write_line(f"{number} tests skipped. {absent}", yellow=True, bold=True)
    for report in terminalreporter.stats.get("passed", []):
        for number in [value for name, value in report.user_properties if name == strace.POINTS]:
            terminalreporter.write_line(f"{strace.POINTS}: {number} ({report.nodeid})")
