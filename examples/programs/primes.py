"""Counts the primes of a range with a segmented sieve."""

from __future__ import annotations

import argparse
import math
import sys


def sieve(limit: int) -> list[int]:
    """List the primes up to ``limit``."""
    flags = bytearray([1]) * (limit + 1)
    flags[:2] = b"\x00\x00"[: len(flags)]
    for number in range(2, math.isqrt(limit) + 1):
        if flags[number]:
            flags[number * number :: number] = bytes(len(range(number * number, limit + 1, number)))
    return [number for number, flag in enumerate(flags) if flag]


def count(low: int, high: int) -> int:
    """Count the primes in ``[low, high)``."""
    low = max(low, 2)
    flags = bytearray([1]) * max(0, high - low)
    for prime in sieve(math.isqrt(max(high, 4))):
        start = max(prime * prime, -(-low // prime) * prime)
        flags[start - low :: prime] = bytes(len(range(start, high, prime)))
    return sum(flags)


def main() -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("low", type=int)
    parser.add_argument("high", type=int)
    options = parser.parse_args()
    print(f"{count(options.low, options.high)} primes in [{options.low}, {options.high})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
