"""Runs case files (given, expected) against this code: ``python -m tools.cases DIR_OR_FILE...``.

A checker is found by what a case looks like, never by its id alone. What comes out differently on purpose is listed
with its reason (``deviations``), and so is what no checker understands, which is skipped. The last line is
``N passed, N failed, N different, N skipped``; the exit code is 1 when any failed.
"""
