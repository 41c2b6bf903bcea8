"""What Iris' own server does otherwise: the table of the page for its users, with the calls that show it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERNAL, WRONG = "INTERNAL", "INVALID_ARGUMENT"
SUM = "Cumulative failed task attempts exceeded max_task_failures: failures={}, limit={}"
ONCE = SUM.format(1, 0)


class Difference(NamedTuple):
    """A row of the table."""

    of: str
    theirs: str
    here: str
    why: str
    shown: Mapping[str, tuple[Any, Any]] = MappingProxyType({})
    """What upstream's server answers, and ours, by the name of the call; none where that takes more than calls."""


def launched(*what: str) -> dict[str, tuple[Any, Any]]:
    """Return the launches that are taken there and refused here."""
    return {f"launch: {each}": (f"/wrong/{each}", WRONG) for each in what}


def one_task(*states: object) -> list[object]:
    """Return what is told of a task, and of its only attempt."""
    state, code, attempt = states
    return [state, code, 0, [[0, attempt, code]]]


LISTED = [f"/list/{name}" for name in ("Q%1", "q_1", *(f"p{number}" for number in reversed(range(7))))]
AGAIN = ["SUCCEEDED", 0, 1, [[0, "FAILED", 3], [1, "SUCCEEDED", 0]]]
PREEMPTED = ["SUCCEEDED", 0, 1, [[0, "PREEMPTED", 0], [1, "SUCCEEDED", 0]]]
KILLED_TWICE = [[0, "FAILED", -9], [1, "FAILED", -9]]
FIELDS = [["/end/fails", "/end/fails", 0, 1, 0, {"failed": 1}, False, "", "default", "local", 100, 64 << 20]]
REQUEST = ["/end/fails", 1, ["sh", "-c", "exit 3"], 0, 0, []]


def fields(error: str) -> dict[str, object]:
    """Return what is told of a job that failed."""
    return {"job": [*FIELDS[0], error], "times": True, "request": REQUEST}


TABLE = (
    Difference(
        "An invalid name, such as `ann`",
        "`INTERNAL`",
        "`INVALID_ARGUMENT`",
        "Clients repeat internal errors for half an hour",
        {
            **{
                f"launch {name!r}": (INTERNAL, WRONG)
                for name in ("ann", "/ann", "/ann/", "//x", "/ann/a//b", "/ann/ /x")
            },
            **{f"{what} bad": (INTERNAL, WRONG) for what in ("status of", "terminate", "complete")},
            "tasks of 'bad'": (INTERNAL, WRONG),
            "register one of what is no task": (INTERNAL, WRONG),
        },
    ),
    Difference(
        "A child with a number for its name",
        "Launched if its parent exists",
        "`INVALID_ARGUMENT`",
        "It would be called like a task",
        {"launch '/ann/deep/0'": ("/ann/deep/0", WRONG)},
    ),
    Difference(
        "`replicas` of 0, negative limits and resources, an unknown `existing_job_policy`, an invalid or missing "
        "bundle, ports without or with the same name",
        "Launched, then failed or ignored",
        "`INVALID_ARGUMENT`",
        "Mistakes are reported at once",
        launched(
            "no replicas",
            "replicas below 0",
            "retries below 0",
            "failures below 0",
            "unknown policy",
            "cpu below 0",
            "no zip",
            "unknown bundle",
            "two ports of one name",
            "a port that is no name",
        ),
    ),
    Difference(
        "TPUs",
        "`FAILED_PRECONDITION` without any",
        "`INVALID_ARGUMENT`",
        "There never are any here",
        {"launch: no such tpu": ("FAILED_PRECONDITION", WRONG)},
    ),
    Difference(
        "The same launch within 60 s, byte by byte",
        "`ALREADY_EXISTS`",
        "The job that it made",
        "A client that lost the answer sends it again",
        {"the same launch at once": (["/name/same", "ALREADY_EXISTS"], ["/name/same", "OK"])},
    ),
    Difference(
        "A failure in one of several tasks",
        "That task is retried, or all with `coscheduling`",
        "All are retried, or end with it",
        "A job is a gang",
        {
            "end: one of two again": (
                ["SUCCEEDED", 1, 0, [AGAIN, one_task("SUCCEEDED", 0, "SUCCEEDED")]],
                ["SUCCEEDED", 1, 0, [AGAIN, ["SUCCEEDED", 0, 1, [[0, "COSCHED_FAILED", 0], [1, "SUCCEEDED", 0]]]]],
            ),
            "end: one of two fails": (
                ["FAILED", 1, 1, [one_task("FAILED", 3, "FAILED"), one_task("KILLED", 0, "KILLED")]],
                ["FAILED", 1, 0, [one_task("FAILED", 3, "FAILED"), one_task("COSCHED_FAILED", 0, "COSCHED_FAILED")]],
            ),
        },
    ),
    Difference(
        "`max_retries_failure`, `max_task_failures`",
        "Of each task; of all together",
        "The smaller one counts attempts of the job",
        "The same",
    ),
    Difference(
        "Pause before a retry",
        "None",
        "1 s, doubled up to 60 s",
        "It spares the machine",
    ),
    Difference(
        "A task that failed when its job had no failures left",
        "Killed, if it had retries itself",
        "Failed",
        "It did",
        {
            "end: retries alone": (
                ["FAILED", 1, 0, [one_task("KILLED", 3, "FAILED")]],
                ["FAILED", 1, 0, [one_task("FAILED", 3, "FAILED")]],
            ),
            "end: capped": (
                ["FAILED", 2, 0, [["KILLED", -9, 1, KILLED_TWICE]]],
                ["FAILED", 2, 0, [["FAILED", -9, 1, KILLED_TWICE]]],
            ),
        },
    ),
    Difference(
        "The error of a failed job",
        "Begins with the sum of its failures",
        "That of its last attempt",
        "Its counts say the rest",
        {
            "error: fails": (f"{ONCE}; Exit code: 3", "Exit code: 3"),
            "error: retries alone": (ONCE, "Exit code: 3"),
            "error: capped": (SUM.format(2, 1), "Exit code: -9"),
            "error: kicked to fail at last": (f"{ONCE}; broken", "broken"),
            "error: too late": (
                f"{ONCE}; Execution timeout exceeded",
                "DeadlineExceeded: ran longer than its deadline of 1.5 s",
            ),
            "error: one of two fails": (f"{ONCE}; Exit code: 3", "Exit code: 3"),
            "fields of fails": (fields(f"{ONCE}; Exit code: 3"), fields("Exit code: 3")),
        },
    ),
    Difference(
        "`preemption_count` of a terminated job, or of one with a failed task",
        "Counts killed tasks",
        "Does not",
        "Nothing was preempted",
        {
            "end: terminated": (
                ["KILLED", 0, 1, [one_task("KILLED", 0, "KILLED")]],
                ["KILLED", 0, 0, [one_task("KILLED", 0, "KILLED")]],
            )
        },
    ),
    Difference(
        "A missing program",
        "Exit code 1",
        "Exit code 127",
        "As in shells",
        {
            "end: no program": (
                ["FAILED", 1, 0, [one_task("FAILED", 1, "FAILED")]],
                ["FAILED", 1, 0, [one_task("FAILED", 127, "FAILED")]],
            ),
            "error: no program": (
                f"{ONCE}; Exit code: 1. stderr: FileNotFoundError: [Errno 2] No such file or directory",
                "Exit code: 127",
            ),
        },
    ),
    Difference(
        "Kick of one task",
        "That task is retried or failed",
        "The job is",
        "A job is a gang",
        {
            "end: one of two kicked": (
                ["SUCCEEDED", 0, 1, [PREEMPTED, one_task("SUCCEEDED", 0, "SUCCEEDED")]],
                ["SUCCEEDED", 0, 1, [PREEMPTED, PREEMPTED]],
            )
        },
    ),
    Difference(
        "The error after a kick",
        "The reason",
        "The reason and the caller",
        "It identifies the operator",
        {
            "error: kicked out": (
                "Kicked to preempted by operator",
                "Preempted: asked by ann: Kicked to preempted by operator",
            )
        },
    ),
    Difference(
        "A job that never fits",
        "Refused with the groups that can grow",
        "Refused with its needs",
        "No machines are made here",
    ),
    Difference(
        "A failing setup script",
        "A failure of the task; a local cluster runs none",
        "A failed launch, tried twice more, costs no budget",
        "Its machine may lack a tool",
        {
            "end: badly set up": (
                ["SUCCEEDED", 0, 0, [one_task("SUCCEEDED", 0, "SUCCEEDED")]],
                [
                    "WORKER_FAILED",
                    0,
                    0,
                    [["WORKER_FAILED", 0, 2, [[number, "WORKER_FAILED", 0] for number in range(3)]]],
                ],
            ),
        },
    ),
    Difference(
        "`secrets`, `container_profile`, `egress_policy`, `federation`, constraints other than equality",
        "Done",
        "Refused",
        "They would not be kept",
        launched("a secret", "privileged", "without a network", "constraint by another operator"),
    ),
    Difference("`task_image`, disk", "Done", "Without effect", "Programs are processes of the machine"),
    Difference(
        "`job_id_prefix` and `name_filter`",
        "`_` is any character; a prefix ignores case",
        "Each character is itself; a name ignores case, a prefix does not",
        "Names differ by case",
        {
            "list: a prefix in another case": ([LISTED, 9, False], [[], 0, False]),
            "list: a name with an underscore": ([LISTED[:2], 2, False], [LISTED[1:2], 1, False]),
        },
    ),
    Difference(
        "Levels of lines",
        "Of the stream, if the line has none",
        "Only the line's",
        "Both streams are one log",
        {"lines: from a level on": ([["", "err"]], [["", "ERROR: told"], ["", "err"]])},
    ),
    Difference(
        "`/proxy/NAME`",
        "Passed on to the endpoint",
        "Only for logs",
        "Clients use addresses",
    ),
    Difference(
        "`report_task_status_text`",
        "Kept",
        "Not kept: its client warns, and goes on",
        "There are no tables",
    ),
    Difference(
        "An endpoint's id that another job's has",
        "Taken over",
        "`FAILED_PRECONDITION` while that attempt runs",
        "Nobody speaks for another's program",
        {"register one of another's id": ("one", "FAILED_PRECONDITION")},
    ),
    Difference("Endpoints of a task", "Any number", "100", "As of every run here"),
    Difference(
        "Log keys by a pattern",
        "Searched",
        "Refused",
        "Only names and prefixes",
        {
            "lines: by a pattern": (
                [["/log/talk/1:0", "last"], *(["/log/talk/1:0", f"line {number}"] for number in range(1, 6))],
                "SchemaValidationError",
            )
        },
    ),
    Difference(
        "Old clients, by `client_revision_date`",
        "Refused after 14 days",
        "Accepted",
        "Their calls are understood",
        {
            "launch: no date": (WRONG, "/wrong/no date"),
            "launch: an old client": ("FAILED_PRECONDITION", "/wrong/an old client"),
        },
    ),
    Difference(
        "`IRIS_TASK_TOKEN`",
        "Set where the cluster knows accounts",
        "Set in each attempt",
        "A task launches its children with its own token",
        {"token of a task": (False, True)},
    ),
)
