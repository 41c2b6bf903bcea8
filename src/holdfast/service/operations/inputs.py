"""What is sent along with jobs, before they are submitted."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct
from holdfast.errors import InvalidRequest, Problem
from holdfast.service.access.asking import asks
from holdfast.service.admission.inputs import kept

if TYPE_CHECKING:
    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend


def decoded(data: str) -> bytes:
    """Read bytes that were sent as base64.

    Raises:
        InvalidRequest: They are none.
    """
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise InvalidRequest(problems=[Problem("data", f"is not base64: {error}")]) from None


class Inputs(Struct, frozen=True):
    """Files and archives that runs find in their work directories."""

    backend: Backend

    @asks(Right.SUBMIT, Subject.JOB)
    def blob(self, caller: Caller, data: bytes, *, archive: bool = False) -> str:
        """Keep something for jobs that are submitted within an hour; returns its name, see ``kept``."""
        return kept(data, self.backend.blobs, caller.principal, field="data", archive=archive)
