"""Words, folders and variables that are not UTF-8: refused with their place, or left out and named."""

from __future__ import annotations

import os

from tests.e2e.test_cli_shell import Shell, served

__all__ = ["served"]


def test_what_is_not_utf_8_is_refused_with_its_field_and_a_variable_is_left_out_by_name(served: Shell) -> None:
    bad = os.fsdecode(b"bad\xff")
    (served.folder / bad).mkdir()
    (served.folder / "job.yaml").write_text("command: [env]\n")
    odd = Shell(served.folder, {**served.environ, "ODD": f"private{bad}"})
    for path, words in (
        ("spec.command[1]", ("run", "--", "echo", bad)),
        ("spec.workingDir", ("run", "--workdir", bad, "--", "true")),
        ("spec.env.ODD", ("run", "--env", "ODD", "--", "true")),
    ):
        said = odd.run(*words)
        assert (said.code, f"  - {path}: is not UTF-8 text; hint: only UTF-8" in said.err) == (2, True), said
        assert "private" not in said.err
    everything = odd.run("run", "--export", "ALL", "--", "sh", "-c", "echo ${ODD-unset}")
    assert (everything.code, everything.out.strip()) == (0, "unset")
    assert "warning: these variables are not UTF-8 text and are not exported: ODD\n" in everything.err
    assert "private" not in everything.err
    submitted = Shell(served.folder / bad, {"HOLDFAST_DATA": str(served.folder / "data")}).run(
        "submit", "-f", "../job.yaml"
    )
    assert "../job.yaml: workingDir (line 1): is not UTF-8 text; hint: only UTF-8" in submitted.err, submitted
    for refused in (served.run("get", "job", bad), served.run("cancel", bad)):
        assert (refused.code, refused.err) == (2, "error: 'bad\\udcff' is not UTF-8 text\n"), refused
