"""Compresses and decompresses bodies, by gzip or zstd; the decompressed size is bounded."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import zstandard

from holdfast.api.connect.refusals import Code, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.api.budget import MemoryShare

GZIP, ZSTD, IDENTITY = "gzip", "zstd", "identity"
LEAST = 1_024
"""Bytes; a smaller answer is not compressed."""
_GZIP_BEGINS = b"\x1f\x8b"
IN_GRPC = (("grpc.per_message_decompression", 0), ("grpc.compression_enabled_algorithms_bitset", 0b101))
"""Makes gRPC accept only gzip, and leave messages compressed, as it does not bound their decompressed size."""
_GZIP_WINDOW = 31
"""What zlib calls gzip with the largest window."""
_LEVEL = 3
"""Fast, as each answer is sent only once."""
_PART = 1_024
"""Bytes of zstd that are decompressed at a time: at worst they become 32 MiB, as its library bounds only its input."""
_SLICE = 65_536
"""Bytes that gzip reads and writes at a time: it copies what it does not need yet."""
_SHORT = "it ends too early"
_MANY = "it has more parts than anything would divide it into"
_MOST_PARTS = 1_000
"""Members of gzip or frames of zstd in one body: an empty one costs as much as any."""
_WINDOW = 1 << 27
"""More than the specification of zstd requires: a frame of a single segment has a window of its own size."""


def _gunzip(body: bytes | bytearray) -> Iterator[bytes]:
    try:
        yield from _members(body)
    except zlib.error as error:
        raise _broken(GZIP, str(error)) from error


def _members(body: bytes | bytearray) -> Iterator[bytes]:
    place, members = 0, 0
    while place < len(body):
        members += 1
        if members > _MOST_PARTS:
            raise _broken(GZIP, _MANY)
        member = zlib.decompressobj(_GZIP_WINDOW)
        while place < len(body) and not member.eof:
            part = body[place : place + _SLICE]
            place += len(part)
            while part and not member.eof:
                yield member.decompress(part, _SLICE)
                part = member.unconsumed_tail
        if not member.eof:
            raise _broken(GZIP, _SHORT)
        place -= len(member.unused_data)


def _unzstd(body: bytes | bytearray) -> Iterator[bytes]:
    place, frames = 0, 0
    while place < len(body):
        frames += 1
        if frames > _MOST_PARTS:
            raise _broken(ZSTD, _MANY)
        frame = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
        while place < len(body) and not frame.eof:
            part = bytes(body[place : place + _PART])
            place += len(part)
            try:
                piece = frame.decompress(part)
            except zstandard.ZstdError as error:
                raise _broken(ZSTD, str(error)) from error
            yield piece
        if not frame.eof:
            raise _broken(ZSTD, _SHORT)
        place -= len(frame.unused_data)


def _gzip(body: bytes) -> bytes:
    stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return stream.compress(body) + stream.flush()


def _zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=_LEVEL).compress(body)


_IN: dict[str, Callable[[bytes | bytearray], Iterator[bytes]]] = {GZIP: _gunzip, ZSTD: _unzstd}
_OUT: dict[str, Callable[[bytes], bytes]] = {GZIP: _gzip, ZSTD: _zstd}
_COPIES = {GZIP: 1, ZSTD: 2}
"""How many times the output is in memory meanwhile: zstd keeps a window that may be as large."""
NAMES = (*_OUT, IDENTITY)


def decompress(name: str, share: MemoryShare, largest: int) -> None:
    """Decompress the body of a share.

    Raises:
        Rejected: It is too large or broken, or the server does not know the compression.
        Unavailable: There is not enough memory now.
    """
    if name == IDENTITY:
        _require_fit(len(share.body), largest)
        return
    if name not in _IN:
        message = f"unknown compression {name!r}; this server knows {', '.join(NAMES)}"
        raise Rejected(Code.UNIMPLEMENTED, message)
    size, whole = len(share.body), bytearray()
    try:
        for part in _IN[name](share.body):
            _require_fit(len(whole) + len(part), largest)
            share.take(len(part) * _COPIES[name])
            whole += part
    except BaseException:
        whole.clear()
        raise
    share.body = whole
    share.give_back(size + len(whole) * (_COPIES[name] - 1))


def encoding_of(message: bytes | bytearray) -> str:
    """Return how a message by gRPC is compressed: no valid message begins with the bytes of gzip."""
    return GZIP if message[:2] == _GZIP_BEGINS else IDENTITY


def chosen(accepted: str) -> str:
    """Return the compression to use for an ``accept-encoding``, which names the preferred one first."""
    for choice in accepted.split(","):
        name, _, weight = (part.strip().lower() for part in choice.partition(";"))
        if name in NAMES and weight.replace(" ", "").rstrip("0.") != "q=":
            return name
    return IDENTITY


def compress(name: str, body: bytes) -> bytes:
    """Compress a body."""
    return _OUT[name](body)


def _require_fit(size: int, largest: int) -> None:
    if size > largest:
        raise too_large(largest)


def too_large(largest: int) -> Rejected:
    """Return the refusal of a message that is too large."""
    return Rejected(Code.INVALID_ARGUMENT, f"the message is larger than the {largest:,} bytes that this server takes")


def _broken(name: str, why: str) -> Rejected:
    return Rejected(Code.INVALID_ARGUMENT, f"the message is not what {name} compresses: {why}")
