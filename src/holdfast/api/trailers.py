"""What a refusal by gRPC has room for.

Its sentence and what is beside it are headers: clients take 8 KiB of these, with all there is, and drop the answer for
more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DETAILS = "grpc-status-details-bin"
"""The header with a ``google.rpc.Status``."""
SENTENCE_ROOM = 1_500
"""Bytes of a sentence as it is sent."""
_DETAILS_ROOM = 3_500
"""Bytes of what is wrong beside the sentence."""
_CUT = 200
"""Characters of one problem, where there is no room for more."""


def cut(sentence: str) -> str:
    """Return a sentence as headers have room for it."""
    room = SENTENCE_ROOM
    for place, character in enumerate(sentence):
        room -= 1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode("utf-8", "replace"))
        if room < 0:
            return f"{sentence[:place]}..."
    return sentence


def fitting(
    sentence: str,
    problems: Sequence[Problem],
    described: Callable[[Problem], str],
    written: Callable[[str, Sequence[Problem]], bytes],
) -> bytes:
    """Return a status with so many problems as headers have room for.

    Args:
        sentence: What is said of all of them.
        problems: What is wrong.
        described: Says one of them, without its path.
        written: Writes a status of a sentence and problems.
    """
    # Thousands of long paths are not written out only to be measured.
    if len(problems) <= _DETAILS_ROOM and sum(len(problem_given.path) for problem_given in problems) <= _DETAILS_ROOM:
        whole = written(sentence, problems)
        if len(whole) <= _DETAILS_ROOM:
            return whole
    fits, room = list[Problem](), _DETAILS_ROOM - SENTENCE_ROOM
    for problem in problems:
        short = Problem(problem.path[:_CUT], described(problem)[:_CUT])
        room -= len(f"{short.path}{short.message}".encode("utf-8", "replace")) + 16
        if room < 0:
            break
        fits.append(short)
    if len(fits) < len(problems):
        fits.append(Problem("", f"and {len(problems) - len(fits)} more"))
    return written(cut(sentence), fits)
