"""One command of Armada's users that is carried out: what was said, where to write, and the way to the door."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from holdfast.cli.armada.failure import Failed, Told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.protobuf.message import Message

    from holdfast.cli.armada.connection import Config, DoorConnection
    from holdfast.cli.armada.line import ParsedLine
    from holdfast.cli.context import Cli


class Invocation:
    """What a command works with."""

    def __init__(self, parsed: ParsedLine, cli: Cli) -> None:
        """Remember what was said."""
        self._parsed, self.cli = parsed, cli
        self._connected = False

    @property
    def words(self) -> Sequence[str]:
        """What follows the verb."""
        return self._parsed.words

    @property
    def flags(self) -> Mapping[str, Any]:
        """Every flag of the verb, given or not."""
        return self._parsed.flags

    def out(self, line: str) -> None:
        """Write a line of the result."""
        self.cli.output().text(line)

    def document(self, text: str) -> None:
        """Write a result of many lines as it is."""
        self.cli.stdout.write(text)

    def note(self, line: str) -> None:
        """Say something that is not the result."""
        self.cli.say(line)

    @cached_property
    def config(self) -> Config:
        """The configuration file."""
        from holdfast.cli.armada.connection import read_config

        return read_config(self.flags["config"])

    @cached_property
    def connection(self) -> DoorConnection:
        """The way to the door."""
        from holdfast.app import whereabouts
        from holdfast.app.settings import read_settings
        from holdfast.cli.armada.connection import DEFAULT_ADDRESS, DoorConnection, chosen

        details = chosen(self.config, self.flags["context"])
        asked = self.flags["armadaUrl"] or details.get("armadaurl")
        place = whereabouts.door(read_settings(), "armada", DEFAULT_ADDRESS, str(asked) if asked else None)
        self._connected = True
        return DoorConnection(place, details)

    def call(self, service: str, method: str, sent: Message, otherwise: str = "{}") -> Told:
        """Call the door.

        Args:
            service: Of the method.
            method: Its name.
            sent: What it is sent.
            otherwise: The sentence of a refusal, around the status.

        Raises:
            Failed: It was refused, or nobody answered.
        """
        try:
            return self.connection.call(service, method, sent)
        except Failed as error:
            raise Failed(otherwise.format(error.message), *error.more) from error

    def close(self) -> None:
        """Disconnect; what is called next looks for the door again."""
        if self._connected:
            self.connection.close()
            del self.connection
            self._connected = False
