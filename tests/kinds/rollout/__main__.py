"""Holdfast with one more kind of work: its command line, and by that its server."""

from __future__ import annotations

from importlib import import_module

from holdfast.domain.terms.kinds import KINDS
from tests.kinds.rollout.words import ROLLOUT

KINDS[ROLLOUT.name] = ROLLOUT  # all that registers it, before what is made from the kinds is imported
import_module("holdfast.cli.main").main()
