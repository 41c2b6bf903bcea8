"""The settings by which a command finds its server. Most commands need no others; ``settings`` has all of them."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - pydantic reads the annotation at run time
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import platformdirs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from holdfast.domain.units import parse_duration
from holdfast.errors import InvalidSetting, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "HOLDFAST_"
"""Of the names of the variables."""


def span(value: object) -> float:
    """Parse a duration into seconds."""
    return parse_duration(value)


class ServerReach(BaseModel):
    """Where a server is, and how to get in; ``read_reach`` takes each from ``HOLDFAST_<NAME>``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str | None = None
    """The server's address, e.g. ``http://127.0.0.1:7070``; unset: look in the data directory."""
    socket: Path | None = None
    """A Unix socket on which ``up`` listens, too; commands need no token there, as the server knows who calls."""
    context: str | None = None
    """The name of a server that ``login`` or ``context`` remembers; unset: the current one; ``local``: none of them."""
    token: SecretStr | None = None
    """The bearer token: sent with ``url``, and what a server requires; unset: ``token`` in the data directory."""
    token_file: Path | None = None
    """A file with the token instead, which only its owner can read."""
    patience: Annotated[float, BeforeValidator(span)] = Field(default="5m", ge=0, validate_default=True)
    """How long commands that wait or follow, and results in Python, wait for a server that stopped answering."""
    data: Path = Field(default_factory=lambda: platformdirs.user_data_path("holdfast", appauthor=False))
    """The data directory: database, logs, work directories, and the running server's address and token."""


T = TypeVar("T", bound=ServerReach)


def read_reach() -> ServerReach:
    """Read them from the environment.

    Raises:
        InvalidSetting: With every wrong setting, by the name of its variable.
    """
    return read(ServerReach, {})


def read(kind: type[T], values: Mapping[str, Any]) -> T:
    """Read settings of a kind; ``values`` override the environment.

    Raises:
        InvalidSetting: With every wrong setting, by the name of its variable.
    """
    try:
        return kind(**{**_environment(kind), **values})
    except ValidationError as error:
        problems = [_problem(fault["loc"], fault["msg"], fault["input"]) for fault in error.errors()]
        msg = "Some settings are not valid." if len(problems) > 1 else "A setting is not valid."
        raise InvalidSetting(msg, problems=problems) from error


def without_token(settings: T) -> T:
    """Return the settings without their token, for a caller that sends another one."""
    return settings.model_copy(update={"token": None, "token_file": None})


def _environment(kind: type[ServerReach]) -> dict[str, str]:
    """Return the variables that are set; an empty one is not: scripts clear variables so, and as a path it is `.`."""
    names = {f"{PREFIX}{name.upper()}": name for name in kind.model_fields}
    return {name: value for variable, name in names.items() if (value := os.environ.get(variable))}


def _problem(place: tuple[int | str, ...], message: str, value: object) -> Problem:
    name = "_".join(str(part) for part in place).upper()
    return Problem(f"{PREFIX}{name}", f"{message}, not {value!r}")
