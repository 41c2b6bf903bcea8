"""The table of what is answered of Iris' services; each module of a noun registers its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.connect.calls import Methods
from holdfast.api.iris._generated.pool import PROTOCOL
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from holdfast.service.manifests.iris import TaskServer

CONTROLLER = "iris.cluster.ControllerService"
ENDPOINTS = "iris.cluster.EndpointService"
LOGS = "finelog.logging.LogService"
PREFIX = "/iris.cluster."
"""Of the paths of the first two."""
LOG_SERVER = "/proxy/system.log-server"
"""Below which clients look for the third."""
CALLS = Methods(PROTOCOL, CONTROLLER, ENDPOINTS, LOGS)


class IrisSettings(Struct, frozen=True):
    """What tasks are told of the server, and how long it remembers their launches."""

    tasks: TaskServer
    again_s: float
    """How long a launch that is sent again is answered as the first time: a client that lost the answer sends it."""
