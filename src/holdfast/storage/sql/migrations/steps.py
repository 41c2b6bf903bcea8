"""Runs the packaged steps with Alembic, in the caller's transaction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config

if TYPE_CHECKING:
    from sqlalchemy import Connection


def configuration(connection: Connection | None = None) -> Config:
    """Return Alembic's configuration for the packaged steps, working on ``connection``."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def run(connection: Connection) -> None:
    """Run every step the database has not seen, in the caller's transaction."""
    command.upgrade(configuration(connection), "head")


def go_back(connection: Connection, revision: str) -> None:
    """Undo every step after a revision, in the caller's transaction."""
    command.downgrade(configuration(connection), revision)
