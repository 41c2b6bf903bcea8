"""A world in virtual time: the real controller and executors, on simulated machines and programs that may break.

``World`` assembles one. Equal stores, scripts and seeds give equal worlds, and an hour takes a moment.
"""

from holdfast.simulation.agenda import Agenda
from holdfast.simulation.machine import Machine
from holdfast.simulation.trace import Trace
from holdfast.simulation.world import World

__all__ = ["Agenda", "Machine", "Trace", "World"]
