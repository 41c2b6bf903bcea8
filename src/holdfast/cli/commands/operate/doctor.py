"""``holdfast doctor``: checks of this machine, with advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags
from holdfast.cli.printing import TEXT_FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.app.doctor import Finding
    from holdfast.cli.context import Cli

_MARGIN = " " * 6


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FORMAT", help="Output format: text, json or yaml.")
    ] = "text"


def doctor(options: DoctorOptions, cli: Cli) -> int:
    """Check this machine, the data directory and the server, and say what to do.

    Each line is ok, warn or fail: with a warning, jobs run with less protection. The exit code is 1 when anything
    fails. Nothing is changed.
    """
    flags = Flags()
    form = flags.choice("--output", options.output, TEXT_FORMATS)
    flags.finish()
    from holdfast.app.doctor import examine

    findings = examine()
    failed = any(finding.verdict == "fail" for finding in findings)
    if form == "text":
        _print(findings, cli)
    else:
        checks = [
            {"name": finding.name, "verdict": str(finding.verdict), "detail": finding.detail, "advice": finding.advice}
            for finding in findings
        ]
        cli.output().document({"ok": not failed, "checks": checks}, form)
    return exit_codes.FAILED if failed else exit_codes.OK


def _print(findings: Sequence[Finding], cli: Cli) -> None:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        cli.output().text(f"{finding.verdict:<6}{finding.name:<{width}}  {finding.detail}")
        if finding.advice:
            cli.output().text(f"{_MARGIN}{'':<{width}}  {finding.advice}")


DOCTOR = Command("doctor", DoctorOptions, doctor, "Operate", examples=("holdfast doctor", "holdfast doctor -o json"))
