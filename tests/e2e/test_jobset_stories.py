"""The user stories of KEP-262, future ones included, from the document's own manifests, with real processes.

Each in three forms: it succeeds, its budget is spent, and exactly as many restarts are needed as it allows.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.e2e.jobset_stage import KEP, VERBATIM, Change, document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.wire.jobsets import JobSetView
    from tests.e2e.jobset_stage import Stage

SMALL = (("spec.replicatedJobs.0.template.spec.parallelism", 3), ("spec.replicatedJobs.0.template.spec.completions", 3))
"""Of 15,000 programs, 15."""
SERVER_POD = {"containers": [{"name": "main", "image": "python:3.8", "command": ["python3 serve.py"]}]}
SERVER_JOB = {
    "name": "parameter-server",
    "template": {"spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", **SERVER_POD}}}},
}
WITH_SERVER: tuple[Change, ...] = (
    *SMALL,
    ("metadata.name", "different-policies"),
    ("spec.replicatedJobs.0.replicas", 1),
    ("spec.replicatedJobs.1", SERVER_JOB),
    ("spec.failurePolicy.maxRestarts", 3),
)
"""The parameter server the story tells of and its manifest lacks, the three restarts it may cause, and a name that
leaves room for it."""


@dataclass(frozen=True, slots=True)
class Story:
    """One form of a story and what must come of it."""

    file: str
    form: str
    plan: Mapping[str, str]
    """Who does what; see ``jobset_stage.PROGRAM``."""
    state: str
    reason: str
    restarts: tuple[int, int]
    """Of the set, and all that count against maxRestarts."""
    started: Mapping[str, int]
    """How many attempts each program had: by replicated job/index/completion index."""
    changes: tuple[Change, ...] = ()
    decided: Mapping[str, int] = field(default_factory=dict)
    """How often each action was granted."""


def attempts(names: Sequence[str], count: int) -> dict[str, int]:
    return dict.fromkeys(names, count)


def numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def until(attempt: int, what: str, who: str = "*") -> dict[str, str]:
    """Plan that programs do something in every attempt before this one."""
    numbers = "|".join(f"{who}@{number}" for number in range(1, attempt))
    return {numbers: what}


RESTARTED_IN_PODS = {"restart-replicated-job"}
"""Their pods are ``OnFailure``: a program that failed is started once more before its Job fails, as by the kubelet."""
ONE = ["buggy-job/0/0"]
FOUR = numbered("buggy-job/0/", 4)
LONE = ["workers/0/0"]
FIFTEEN = [f"workers/{job}/{rank}" for job in range(5) for rank in range(3)]
THREE = numbered("workers/0/", 3)
GPU = [f"gpu-workers/{job}/{rank}" for job in range(4) for rank in range(2)]
TEN = [f"simulations/{job}/0" for job in range(10)]
SPENT = "ReachedMaxRestarts"
DONE = "AllJobsCompleted"

STORIES = [
    Story(
        "fail-jobset",
        "maintenance",
        until(3, "leave 143"),
        "Completed",
        DONE,
        (2, 2),
        attempts(ONE, 3),
        decided={"RestartJobSet": 2},
    ),
    Story(
        "fail-jobset",
        "a software bug fails it at once",
        {"*": "leave 1"},
        "Failed",
        "FailJobSetFailurePolicyAction",
        (0, 0),
        attempts(ONE, 1),
        decided={"FailJobSet": 1},
    ),
    Story(
        "fail-jobset",
        "exhausted",
        {"*": "leave 143"},
        "Failed",
        SPENT,
        (10, 10),
        attempts(ONE, 11),
        decided={"RestartJobSet": 10},
    ),
    Story("fail-jobset", "boundary", until(11, "leave 143"), "Completed", DONE, (10, 10), attempts(ONE, 11)),
    Story(
        "restart-jobset",
        "success",
        {"*/2@1": "meet 4; leave 1", "*@1": "stay"},
        "Completed",
        DONE,
        (1, 1),
        attempts(FOUR, 2),
        decided={"RestartJobSet": 1},
    ),
    Story(
        "restart-jobset",
        "exhausted",
        {"*/2@*": "meet 4; leave 1", "*": "stay"},
        "Failed",
        SPENT,
        (10, 10),
        attempts(FOUR, 11),
    ),
    Story(
        "restart-jobset",
        "boundary",
        {"*@11": "ok", "*/2@*": "meet 4; leave 1", "*": "stay"},
        "Completed",
        DONE,
        (10, 10),
        attempts(FOUR, 11),
    ),
    Story(
        "restart-jobset-and-ignore-max-restarts",
        "maintenance more often than maxRestarts",
        until(13, "leave 143"),
        "Completed",
        DONE,
        (12, 0),
        attempts(LONE, 13),
        decided={"RestartJobSetAndIgnoreMaxRestarts": 12},
    ),
    Story(
        "restart-jobset-and-ignore-max-restarts",
        "exhausted",
        {"*@3": "leave 143", "*": "leave 1"},
        "Failed",
        SPENT,
        (11, 10),
        attempts(LONE, 12),
        decided={"RestartJobSet": 10, "RestartJobSetAndIgnoreMaxRestarts": 1},
    ),
    Story(
        "restart-jobset-and-ignore-max-restarts",
        "boundary",
        {"*@3|*@7": "leave 143", **until(13, "leave 1")},
        "Completed",
        DONE,
        (12, 10),
        attempts(LONE, 13),
        decided={"RestartJobSet": 10, "RestartJobSetAndIgnoreMaxRestarts": 2},
    ),
    Story(
        "different-policies",
        "workers fail as often as they like, at a budget of nothing",
        {"workers/4/1@[1-3]": "meet 15; leave 1", "*@[1-3]": "stay"},
        "Completed",
        DONE,
        (3, 0),
        attempts(FIFTEEN, 4),
        SMALL,
        {"RestartJobSetAndIgnoreMaxRestarts": 3},
    ),
    Story(
        "different-policies",
        "exhausted by the parameter server",
        {"parameter-server/*": "meet 4; leave 1", "*": "stay"},
        "Failed",
        SPENT,
        (3, 3),
        attempts([*THREE, "parameter-server/0/0"], 4),
        WITH_SERVER,
        {"RestartJobSet": 3},
    ),
    Story(
        "different-policies",
        "boundary: three by the parameter server, two by workers",
        {
            "parameter-server/*@[135]": "meet 4; leave 1",
            "workers/0/0@[24]": "meet 4; leave 1",
            "*@[1-5]": "stay",
        },
        "Completed",
        DONE,
        (5, 3),
        attempts([*THREE, "parameter-server/0/0"], 6),
        WITH_SERVER,
        {"RestartJobSet": 3, "RestartJobSetAndIgnoreMaxRestarts": 2},
    ),
    Story(
        "restart-replicated-job",
        "success",
        {"gpu-workers/3/1@1": "meet 9; leave 1", "gpu-workers/*@1": "stay", "driver/*": "await done; ok"},
        "Completed",
        DONE,
        (0, 1),
        {**attempts(GPU, 2), "driver/0/0": 1},
        decided={"RestartReplicatedJob": 1},
    ),
    Story(
        "restart-replicated-job",
        "the driver takes all with it",
        {"driver/0/0@1": "meet 9; leave 1", "*@1": "stay"},
        "Completed",
        DONE,
        (1, 1),
        attempts([*GPU, "driver/0/0"], 2),
        decided={"RestartJobSet": 1},
    ),
    Story(
        "restart-replicated-job",
        "exhausted",
        {"gpu-workers/3/1@1": "meet 9; leave 1", "gpu-workers/3/1@*": "meet 8; leave 1", "*": "stay"},
        "Failed",
        SPENT,
        (0, 10),
        {**attempts(GPU, 11), "driver/0/0": 1},
        decided={"RestartReplicatedJob": 10},
    ),
    Story(
        "restart-replicated-job",
        "boundary",
        {
            "gpu-workers/3/1@1": "meet 9; leave 1",
            "*@11": "ok",
            "gpu-workers/3/1@*": "meet 8; leave 1",
            "driver/*": "await done; ok",
            "*": "stay",
        },
        "Completed",
        DONE,
        (0, 10),
        {**attempts(GPU, 11), "driver/0/0": 1},
    ),
    Story("fail-job-and-restart-job", "success", {}, "Completed", DONE, (0, 0), attempts(TEN, 1)),
    Story(
        "fail-job-and-restart-job",
        "bad parameters leave one job failed and the others alone",
        {"simulations/7/0@*": "leave 2"},
        "Failed",
        "FailedJobs",
        (0, 0),
        attempts(TEN, 1),
        decided={"FailJob": 1},
    ),
    Story(
        "fail-job-and-restart-job",
        "exhausted: as it is written it allows no restart",
        {"simulations/7/0@*": "meet 10; leave 3", "*": "stay"},
        "Failed",
        SPENT,
        (0, 0),
        attempts(TEN, 1),
    ),
    Story(
        "fail-job-and-restart-job",
        "boundary: two restarts, of two jobs, and two are allowed",
        {"simulations/7/0@1|simulations/2/0@1": "leave 3"},
        "Completed",
        DONE,
        (0, 2),
        {**attempts(TEN, 1), "simulations/7/0": 2, "simulations/2/0": 2},
        (("spec.failurePolicy.maxRestarts", 2),),
        {"RestartJob": 2},
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: f"{story.file}: {story.form}")
def test_a_story_of_the_document_comes_out_as_it_tells(stage: Stage, story: Story) -> None:
    ledger = stage.ledger()
    manifest = document(story.file, ledger, story.plan, story.changes)
    if story.file == VERBATIM:
        manifest["metadata"]["name"] += "-2"  # the first is there to the letter
    name = stage.apply(manifest)
    if "await done" in "".join(story.plan.values()):
        stage.until(name, lambda view: succeeded(view, "gpu-workers") == 4, "four finished jobs")
        ledger.say("done")
    view = stage.ended(name)
    log = stage.decisions(name)
    stage.delete(name)
    assert (view.terminal, view.reason) == (story.state, story.reason)
    assert (view.restarts, view.restarts_counted) == story.restarts
    started = ledger.started()
    assert {who: len(set(numbers)) for who, numbers in started.items()} == story.started
    assert all(sorted(set(numbers)) == list(range(1, len(set(numbers)) + 1)) for numbers in started.values())
    once = all(len(numbers) == len(set(numbers)) for numbers in started.values())
    assert once or story.file in RESTARTED_IN_PODS
    granted = [action for action, granted in log if granted]
    assert all(granted.count(action) == count for action, count in story.decided.items()), log
    assert [granted for _, granted in log].count(False) == (story.reason == SPENT)
    ledger.check()


def succeeded(view: JobSetView, group: str) -> int:
    return next(one.succeeded for one in view.groups if one.name == group)


MISTAKES = {
    "different-policies": (16, 18, 31),
    "fail-job-and-restart-job": (6,),
    "fail-jobset": (36,),
    "restart-jobset": (27,),
    "restart-jobset-and-ignore-max-restarts": (36,),
    "restart-replicated-job": (6,),
}
"""On which lines the document's manifests are wrong: images that are there twice, placeholders, names."""


def test_read_strictly_the_documents_manifests_are_refused_line_by_line(stage: Stage) -> None:
    files = [word for file in MISTAKES for word in ("-f", str(KEP / f"{file}.yaml"))]
    refused = stage.run("apply", *files)
    assert refused.returncode == 2
    assert "--lenient turns these into warnings" in refused.stderr
    for file, lines in MISTAKES.items():
        said = [line for line in refused.stderr.splitlines() if f"/{file}.yaml" in line]
        assert sorted(line.partition("(line ")[2].partition(")")[0] for line in said) == [str(one) for one in lines]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="the manifest's program is bash")
def test_the_first_story_runs_to_the_letter(stage: Stage) -> None:
    applied = stage.verbatim
    assert (applied.returncode, applied.stdout) == (0, "jobset fail-jobset-example created\n")
    warnings = applied.stderr.splitlines()
    assert any("(line 36): duplicate key 'image', first on line 35" in line for line in warnings)
    assert any("image docker.io/library/bash:5 is ignored" in line for line in warnings)
    view = stage.ended("fail-jobset-example")
    log = stage.run("logs", "fail-jobset-example-buggy-job-0").stdout
    why = stage.run("why", "jobset", "fail-jobset-example").stdout
    stage.delete("fail-jobset-example")
    assert (view.terminal, view.restarts, view.reason) == ("Failed", 0, "FailJobSetFailurePolicyAction")
    assert log == "Hello world! I'm going to exit with exit code 1 to simulate a software bug.\n"
    assert "FailJobSet: the set fails at once" in why
