"""The command line of the case runner."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

from tools.cases.checkers import check
from tools.cases.loading import case_files, read_cases
from tools.cases.results import Case, Deviates, Mismatch, Skip


def main(arguments: list[str]) -> int:
    """Check every case and print what came of it; return the exit code."""
    parser = argparse.ArgumentParser(prog="cases", description="Run case files against this code.")
    parser.add_argument("paths", nargs="+", type=Path, metavar="DIR_OR_FILE")
    parser.add_argument("-v", "--verbose", action="store_true", help="one line for each passed and skipped case too")
    options = parser.parse_args(arguments)
    try:
        cases = [case for path in case_files(options.paths) for case in read_cases(path)]
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cases: {error}\n")
        return 2
    return _run(cases, verbose=options.verbose)


def _run(cases: list[Case], *, verbose: bool) -> int:
    passed = failed = 0
    skipped: dict[str, list[str]] = defaultdict(list)
    different: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        name = str(case.get("id", "?"))
        try:
            mismatches = _checked(case)
        except Skip as skip:
            skipped[str(skip)].append(name)
            continue
        except Deviates as deviates:
            different[str(deviates)].append(name)
            continue
        if mismatches:
            failed += 1
            sys.stdout.write(f"FAILED  {name}: {'; '.join(map(str, mismatches))}\n")
        else:
            passed += 1
            sys.stdout.write(f"passed  {name}\n" if verbose else "")
    _print_reasons("different", different, verbose=verbose)
    _print_reasons("skipped", skipped, verbose=verbose)
    others, total = (sum(map(len, reasons.values())) for reasons in (different, skipped))
    sys.stdout.write(f"{passed} passed, {failed} failed, {others} different, {total} skipped\n")
    return 1 if failed else 0


def _checked(case: Case) -> list[Mismatch]:
    try:
        return check(case)
    except (Skip, Deviates):
        raise
    except Exception as error:  # noqa: BLE001 - a case must never end the run
        return [Mismatch("checking", "no exception", f"{type(error).__name__}: {error}")]


def _print_reasons(word: str, reasons: dict[str, list[str]], *, verbose: bool) -> None:
    for reason, names in reasons.items():
        if verbose or len(names) == 1:
            sys.stdout.writelines(f"{word} {name}: {reason}\n" for name in names)
        else:
            sys.stdout.write(f"{word} {len(names)} cases ({names[0]} ... {names[-1]}): {reason}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
