"""Simulated runs under any clock: an engine for tests and simulations."""

from holdfast.engines.simulated.engine import SimulatedEngine
from holdfast.engines.simulated.life import SimulatedRun

__all__ = ["SimulatedEngine", "SimulatedRun"]
