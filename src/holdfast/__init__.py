"""Holdfast runs batch and ML work to completion on unreliable machines, and explains every decision.

Reading order: ``domain.lifecycle``, ``domain.policy``, ``controller``, ``ports``, ``app``.
"""

__version__ = "0.1.0"
