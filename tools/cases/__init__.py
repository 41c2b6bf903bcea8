"""Runs case files (given, expected) against this code: ``python -m tools.cases DIR_OR_FILE...``.

A checker is found by what a case looks like, never by its id alone; what cannot be checked yet is skipped
with its reason. The last line is ``N passed, N failed, N skipped``; the exit code is 1 when any failed.
"""
