"""The Protocol Buffers of a door: its messages and services, in a descriptor pool of their own.

An upstream's client registers messages of the same names in the default pool. With a pool of our own, both can be
imported in one process.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

if TYPE_CHECKING:
    from google.protobuf.descriptor import FileDescriptor, ServiceDescriptor
    from google.protobuf.message import Message

DESCRIPTORS = "descriptors.binpb"
"""The file beside the stubs with the descriptors of all, dependencies first."""


class Protocol:
    """The messages and services of one door."""

    def __init__(self, package: str) -> None:
        """Load the descriptors of the stubs in ``package``."""
        described = descriptor_pb2.FileDescriptorSet.FromString(files(package).joinpath(DESCRIPTORS).read_bytes())
        self.pool = DescriptorPool()
        for file in described.file:
            self.pool.Add(file)

    def message(self, name: str) -> type[Message]:
        """Return a message by its full name."""
        message_type: type[Message] = message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))
        return message_type

    def service(self, name: str) -> ServiceDescriptor:
        """Return a service by its full name."""
        return self.pool.FindServiceByName(name)

    def exported(self, path: str) -> dict[str, Any]:
        """Return the names of a file's stub module: its messages, enumerations and their numbers."""
        file: FileDescriptor = self.pool.FindFileByName(path)
        names: dict[str, Any] = {
            name: self.message(descriptor.full_name) for name, descriptor in file.message_types_by_name.items()
        }
        for name, enum in file.enum_types_by_name.items():
            names[name] = EnumTypeWrapper(enum)
            names.update({value.name: value.number for value in enum.values})
        return names
