"""Ctrl-C is heeded, also when the first one is lost."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from holdfast.cli.watching.interrupts import insistent_interrupts


def test_an_interrupt_that_was_lost_comes_again() -> None:
    with insistent_interrupts():
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.pause()


def test_the_signals_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)
    with suppress(KeyboardInterrupt), insistent_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
