"""Builds an index in memory, as large as asked for; needs the memory for real and touches every page of it."""

from __future__ import annotations

import argparse
import sys
import time

MEBIBYTE = 1 << 20
STEP = 8


def build(mebibytes: int, pace_s: float) -> list[bytearray]:
    """Grow the index step by step; every page is written, so it counts as resident."""
    index: list[bytearray] = []
    for done in range(0, mebibytes, STEP):
        block = bytearray(min(STEP, mebibytes - done) * MEBIBYTE)
        block[::4096] = b"\x01" * len(range(0, len(block), 4096))
        index.append(block)
        time.sleep(pace_s)
    return index


def main() -> int:
    """Build, then hold it for a moment, as a program that uses its index would."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=96)
    parser.add_argument("--pace", type=float, default=0.02, metavar="SECONDS", help="rest between two steps")
    parser.add_argument("--hold", type=float, default=0.2, metavar="SECONDS", help="how long to use the index")
    options = parser.parse_args()
    print(f"building an index of {options.mebibytes} MiB", flush=True)
    index = build(options.mebibytes, options.pace)
    time.sleep(options.hold)
    print(f"indexed {sum(map(len, index)) // MEBIBYTE} MiB in {len(index)} blocks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
