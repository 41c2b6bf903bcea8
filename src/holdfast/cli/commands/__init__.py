"""All commands, one file each, in the order the overview lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.commands.apply import APPLY
from holdfast.cli.commands.attempts import ATTEMPTS
from holdfast.cli.commands.create import CREATE
from holdfast.cli.commands.db import DB
from holdfast.cli.commands.delete import DELETE
from holdfast.cli.commands.describe import DESCRIBE
from holdfast.cli.commands.events import EVENTS
from holdfast.cli.commands.get import GET
from holdfast.cli.commands.logs import LOGS
from holdfast.cli.commands.restart import RESTART
from holdfast.cli.commands.run import RUN
from holdfast.cli.commands.steer import CANCEL, HOLD, RELEASE
from holdfast.cli.commands.submit import SUBMIT
from holdfast.cli.commands.suspend import RESUME, SUSPEND
from holdfast.cli.commands.up import UP
from holdfast.cli.commands.update import UPDATE
from holdfast.cli.commands.version import VERSION
from holdfast.cli.commands.wait import WAIT
from holdfast.cli.commands.why import WHY

if TYPE_CHECKING:
    from holdfast.cli.command import Command

COMMANDS: tuple[Command[Any], ...] = (
    *(RUN, SUBMIT),
    *(GET, DESCRIBE, ATTEMPTS, LOGS, EVENTS, WHY, WAIT),
    *(CANCEL, HOLD, RELEASE, SUSPEND, RESUME, RESTART),
    *(UP, APPLY, CREATE, UPDATE, DELETE, DB, VERSION),
)
