"""How bodies are compressed: not at all, by gzip or by zstd; what comes out is bounded, whatever went in."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import zstandard

from holdfast.api.connect.refusals import Code, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable

GZIP, ZSTD, IDENTITY = "gzip", "zstd", "identity"
LEAST = 1_024
"""Bytes; a smaller answer is sent as it is."""
_GZIP_WINDOW = 31
"""What zlib calls gzip with its largest window."""
_LEVEL = 3
"""Fast: each answer is sent once."""
_PART = 1_024
"""Bytes; the worst of them become 32 MiB, as zstd's library bounds only what goes in."""
_SHORT = "it ends too early"
_LEAST_WINDOW = 1 << 23
"""What the specification of zstd would have everybody know."""


def _gunzip(body: bytes, largest: int) -> bytes:
    found, rest = bytearray(), body
    while rest:
        one = zlib.decompressobj(_GZIP_WINDOW)
        try:
            found += one.decompress(rest, largest + 1 - len(found))
        except zlib.error as error:
            raise _broken(GZIP, str(error)) from error
        if len(found) > largest:
            raise too_large(largest)
        if not one.eof:
            raise _broken(GZIP, _SHORT)
        rest = one.unused_data
    return bytes(found)


def _unzstd(body: bytes, largest: int) -> bytes:
    # A frame of one segment needs a window of its own size.
    window, found, place = max(_LEAST_WINDOW, 1 << largest.bit_length()), bytearray(), 0
    while place < len(body):
        one = zstandard.ZstdDecompressor(max_window_size=window).decompressobj()
        while place < len(body) and not one.eof:
            part = body[place : place + _PART]
            try:
                found += one.decompress(part)
            except zstandard.ZstdError as error:
                raise _broken(ZSTD, str(error)) from error
            if len(found) > largest:
                raise too_large(largest)
            place += len(part)
        if not one.eof:
            raise _broken(ZSTD, _SHORT)
        place -= len(one.unused_data)
    return bytes(found)


def _gzip(body: bytes) -> bytes:
    one = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return one.compress(body) + one.flush()


def _zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=_LEVEL).compress(body)


_IN: dict[str, Callable[[bytes, int], bytes]] = {GZIP: _gunzip, ZSTD: _unzstd}
_OUT: dict[str, Callable[[bytes], bytes]] = {GZIP: _gzip, ZSTD: _zstd}
NAMES = (*_OUT, IDENTITY)


def decompress(name: str, body: bytes, largest: int) -> bytes:
    """Return a body as it was before it was compressed.

    Raises:
        Rejected: It is too large, is broken, or nobody here knows how it was compressed.
    """
    if name in {"", IDENTITY}:
        return body
    if name not in _IN:
        told = f"unknown compression {name!r}; this server knows {', '.join(NAMES)}"
        raise Rejected(Code.UNIMPLEMENTED, told)
    return _IN[name](body, largest)


def chosen(accepted: str) -> str:
    """Return how to compress for somebody who accepts these, best liked first."""
    for one in accepted.split(","):
        name, _, weight = (part.strip().lower() for part in one.partition(";"))
        if name in NAMES and weight.replace(" ", "").rstrip("0.") != "q=":
            return name
    return IDENTITY


def compress(name: str, body: bytes) -> bytes:
    """Compress a body."""
    return _OUT[name](body)


def too_large(largest: int) -> Rejected:
    """Say that a message is too large, which its sender alone can mend."""
    return Rejected(Code.INVALID_ARGUMENT, f"the message is larger than the {largest:,} bytes that this server takes")


def _broken(name: str, why: str) -> Rejected:
    return Rejected(Code.INVALID_ARGUMENT, f"the message is not what {name} compresses: {why}")
