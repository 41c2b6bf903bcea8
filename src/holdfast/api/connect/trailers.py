"""Fits a refusal into the headers that end a call by gRPC.

Clients accept 8 KiB of headers in all, and drop the answer if there are more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.connect._generated import status
from holdfast.api.connect.refusals import described, violations_of
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.api.connect.refusals import Rejected

DETAILS = "grpc-status-details-bin"
"""The header with a ``google.rpc.Status``."""
_SENTENCE_ROOM = 1_500
"""Bytes of the sentence, as it is sent."""
_DETAILS_ROOM = 3_500
"""Bytes of the problems beside the sentence."""
_SHORT = 200
"""Characters of the path and of the text of a problem, if they do not all fit."""


def cut(sentence: str) -> str:
    """Return a sentence, shortened to what headers have room for."""
    room = _SENTENCE_ROOM
    for place, character in enumerate(sentence):
        room -= 1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode("utf-8", "replace"))
        if room < 0:
            return f"{sentence[:place]}..."
    return sentence


def trailers(refused: Rejected) -> tuple[tuple[str, bytes], ...]:
    """Return the headers that stand beside the sentence: the problems, as many as there is room for."""
    problems = refused.problems
    if not problems:
        return ()
    # Thousands of long paths are not encoded only to be measured.
    if len(problems) <= _DETAILS_ROOM and sum(len(problem.path) for problem in problems) <= _DETAILS_ROOM:
        whole = _encode(refused, refused.message, problems)
        if len(whole) <= _DETAILS_ROOM:
            return ((DETAILS, whole),)
    fits, room = list[Problem](), _DETAILS_ROOM - _SENTENCE_ROOM
    for problem in problems:
        short = Problem(problem.path[:_SHORT], described(problem)[:_SHORT])
        room -= len(f"{short.path}{short.message}".encode("utf-8", "replace")) + 16
        if room < 0:
            break
        fits.append(short)
    if len(fits) < len(problems):
        fits.append(Problem("", f"and {len(problems) - len(fits)} more"))
    return ((DETAILS, _encode(refused, cut(refused.message), fits)),)


def _encode(refused: Rejected, sentence: str, problems: Sequence[Problem]) -> bytes:
    whole = status.Status(code=refused.code.number, message=sentence)
    whole.details.add().Pack(violations_of(problems))
    return whole.SerializeToString()
