"""What ``why`` prints about a job set, against a server that is a script."""

from __future__ import annotations

import io

import pytest

from holdfast.cli.commands.why import print_set_why
from holdfast.cli.render.output import Output
from holdfast.wire.jobsets import JobSetWhy
from tests.unit.jobset_server import AT, DECISION, said


def test_why_tells_each_decision_and_counts_those_it_leaves_out() -> None:
    found = said("why jobset train --job train-workers-0")
    assert found.out.splitlines() == [
        "Job set train runs.",
        "",
        "4 earlier decisions are not shown.",
        "",
        f"{AT[:19]}Z train-workers-0",
        "Rule preempted matched: the reason is Preempted.",
    ]
    assert found.server.asked == [("why", "train", "train-workers-0")]


def restarts(*codes: int) -> JobSetWhy:
    """Make up a history of one job, which failed with these codes."""
    traces = [
        {
            "at": f"2026-07-01T08:00:{number:02}.000Z",
            "decision": {**DECISION, "attempt": number},
            "summary": [
                f"Attempt {number} failed on node n1 after {90 + number}ms: exit code {code}.",
                "No rule matched, so the default action applied.",
                f"This is restart {number} of 20 (maxRestarts).",
            ],
        }
        for number, code in enumerate(codes, start=1)
    ]
    why = {"id": "01s", "name": "train", "state": "Running", "headline": "Job set train runs.", "traces": traces}
    return JobSetWhy.model_validate(why)


def why_printed(found: JobSetWhy, *, everything: bool = False) -> list[str]:
    stream = io.StringIO()
    print_set_why(found, Output(stream), everything=everything)
    return stream.getvalue().splitlines()


def test_decisions_that_are_alike_are_one_with_a_count_and_the_latest_of_them() -> None:
    assert why_printed(restarts(3, 3, 3, 3, 4)) == [
        "Job set train runs.",
        "",
        "3 similar decisions since 2026-07-01T08:00:01Z (attempts 1 to 3); --all shows each.",
        "2026-07-01T08:00:04Z train-workers-0",
        "Attempt 4 failed on node n1 after 94ms: exit code 3.",
        "No rule matched, so the default action applied.",
        "This is restart 4 of 20 (maxRestarts).",
        "",
        "2026-07-01T08:00:05Z train-workers-0",
        "Attempt 5 failed on node n1 after 95ms: exit code 4.",
        "No rule matched, so the default action applied.",
        "This is restart 5 of 20 (maxRestarts).",
    ]


@pytest.mark.parametrize(("codes", "told"), [((3, 3), 2), ((3, 4, 3, 4), 4), ((3,) * 20, 1), ((3, 3, 4, 4, 4), 3)])
def test_each_decision_is_told_where_few_in_a_row_are_alike_or_all_are_wanted(
    codes: tuple[int, ...], told: int
) -> None:
    history = restarts(*codes)
    assert sum(line.startswith("Attempt") for line in why_printed(history)) == told
    whole = why_printed(history, everything=True)
    assert sum(line.startswith("Attempt") for line in whole) == len(codes)
    assert not [line for line in whole if "more like" in line]
