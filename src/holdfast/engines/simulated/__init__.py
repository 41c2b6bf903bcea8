"""Runs that only pretend, under any clock: an engine for tests and simulations."""

from holdfast.engines.simulated.engine import SimulatedEngine, SimulatedRun

__all__ = ["SimulatedEngine", "SimulatedRun"]
