"""The table of what is answered of Armada's services; each module of a noun registers its calls.

What the services declare beside them is not implemented, and says so.
"""

from __future__ import annotations

from holdfast.api.armada._generated.pool import PROTOCOL
from holdfast.api.connect.calls import Methods

SERVICES = (
    "api.Submit",
    "api.QueueService",
    "api.RetryPolicyService",
    "api.Event",
    "api.Jobs",
    "api.Node",
    "binoculars.Binoculars",
)
CALLS = Methods(PROTOCOL, *SERVICES)
LARGEST_MESSAGE = 16 * 1024 * 1024
"""Bytes, sent or received."""
