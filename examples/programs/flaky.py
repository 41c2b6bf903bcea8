"""Fails until a given attempt, like a program that depends on something which is not ready yet."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main() -> int:
    """Compare the attempt's number, which Holdfast puts in the environment, with the one to succeed on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--succeed-on", type=int, default=3, metavar="ATTEMPT")
    parser.add_argument("--exit-code", type=int, default=7)
    options = parser.parse_args()
    attempt = int(os.environ.get("HOLDFAST_ATTEMPT", "1"))
    if attempt >= options.succeed_on:
        print(f"attempt {attempt}: the database answered, all 12 tables copied")
        return 0
    complaint = f"attempt {attempt}: the database refused the connection"
    print(complaint, file=sys.stderr)
    if log := os.environ.get("HOLDFAST_TERMINATION_LOG"):
        Path(log).write_text(f"TRANSIENT {complaint}\n")
    return int(options.exit_code)


if __name__ == "__main__":
    sys.exit(main())
