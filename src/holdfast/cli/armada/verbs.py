"""All commands of ``armadactl``, by the words that its users type."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.cli.armada import contexts, jobs, nodes, policies, queues, watching
from holdfast.cli.armada.failure import Failed
from holdfast.cli.armada.line import ArmadaCommand, Flag, FlagKind

if TYPE_CHECKING:
    from holdfast.cli.armada.invocation import Invocation

PAGE = "https://armadaproject.io/"


def _version(asked: Invocation) -> int:
    lines = (
        ("Version:", f"{__version__} of Holdfast"),
        ("Commit:", "none"),
        ("Go version:", "none"),
        ("Built:", "none"),
    )
    for label, value in lines:
        asked.out(f"{label:<11} {value}")
    return 0


def _docs(asked: Invocation) -> int:
    asked.out(f"What each command does: armadactl COMMAND --help. Of Armada itself: {PAGE}")
    return 0


def _absent(what: str, instead: str, _asked: Invocation) -> int:
    told = f"{what} is not here: this is Holdfast"
    raise Failed(told, f"  instead: {instead}")


def _not_here(name: str, words: str, summary: str, instead: str, group: str) -> ArmadaCommand:
    run = partial(_absent, f"`{group} {name}`", instead)
    flags = (
        *(Flag(one, FlagKind.LIST, "", one[0]) for one in ("queues", "priority-classes")),
        Flag("pools", FlagKind.LIST, ""),
        Flag("executor", FlagKind.TEXT, "", "e"),
        Flag("all-priority-classes", FlagKind.FLAG, "", "a"),
        *(Flag(one, FlagKind.TEXT, "") for one in ("queue", "job-id")),
        Flag("verbose", FlagKind.COUNT, "", "v"),
    )
    return ArmadaCommand(name, f"{summary} (not here)", run, words, None, flags)


_NODES = "holdfast cordon NODE, holdfast uncordon NODE; nodes are listed by holdfast get nodes"
_ON_NODE = "armadactl preempt node NODE -e EXECUTOR -a, or holdfast drain NODE"
_REPORT = "holdfast summary, holdfast top, and of one job: holdfast why JOB"
_WHY = "holdfast why JOB"
_JOBS_ON = "armadactl cancel node NODE -e EXECUTOR -a"
ROOT = ArmadaCommand(
    "armadactl",
    "armadactl controls Armada's queues and jobs; this one is Holdfast's.",
    flags=(
        Flag("armadaUrl", FlagKind.TEXT, "Where the door is, as HOST:PORT."),
        Flag("context", FlagKind.TEXT, "Context of the configuration file.", "c"),
        Flag("config", FlagKind.TEXT, "Configuration file; without it $HOME/.armadactl.yaml."),
    ),
    verbs=(
        ArmadaCommand(
            "cancel",
            "Cancel jobs",
            verbs=(
                jobs.CANCEL_JOB,
                jobs.CANCEL_JOB_SET,
                jobs.CANCEL_QUEUES,
                _not_here("executor", "<executor>", "Cancel jobs on an executor", _JOBS_ON, "cancel"),
                nodes.CANCEL,
            ),
        ),
        ArmadaCommand(
            "create",
            "Create queues and retry policies of a file, or one that is named",
            policies.create_resources,
            flags=policies.RESOURCE_FLAGS,
            verbs=(queues.CREATE, policies.CREATE),
        ),
        ArmadaCommand(
            "delete",
            "Delete a queue or a retry policy",
            verbs=(
                queues.DELETE,
                policies.DELETE,
                _not_here("executor", "<executor-name>", "Delete an executor", _NODES, "delete"),
            ),
        ),
        ArmadaCommand(
            "update",
            "Update queues and retry policies of a file, or one that is named",
            policies.update_resources,
            flags=policies.RESOURCE_FLAGS,
            verbs=(queues.UPDATE, policies.UPDATE),
        ),
        ArmadaCommand(
            "get",
            "Show queues and retry policies",
            verbs=(
                queues.GET,
                queues.GET_ALL,
                policies.GET,
                policies.GET_ALL,
                _not_here("scheduling-report", "", "Show what the scheduler did", _REPORT, "get"),
                _not_here("queue-report", "<queue-name>", "Show what it did about a queue", _REPORT, "get"),
                _not_here("job-report", "<job-id>", "Show what it did about a job", _WHY, "get"),
            ),
        ),
        ArmadaCommand(
            "reprioritize",
            "Change the priority of jobs",
            verbs=(jobs.REPRIORITIZE_JOB, jobs.REPRIORITIZE_JOB_SET),
        ),
        jobs.SUBMIT_JOBS,
        ArmadaCommand("version", "Show which program this is", _version),
        watching.WATCH,
        ArmadaCommand(
            "config",
            "Show and choose contexts of the configuration file; have a server read its own again",
            verbs=(contexts.USE, contexts.LIST, contexts.CURRENT, contexts.RELOAD),
        ),
        ArmadaCommand(
            "preempt",
            "Take the places of jobs",
            verbs=(
                jobs.PREEMPT_JOB,
                jobs.PREEMPT_QUEUES,
                _not_here("executor", "<executor>", "Preempt jobs on an executor", _ON_NODE, "preempt"),
                nodes.PREEMPT,
            ),
        ),
        ArmadaCommand(
            "docs", "Say where what is written", _docs, flags=(Flag("to-stdout", FlagKind.FLAG, "Is accepted.", "p"),)
        ),
        ArmadaCommand(
            "cordon",
            "Have queues start no more jobs",
            verbs=(
                queues.CORDON,
                _not_here("executor", "<executor_name> <cordon_reason>", "Cordon an executor", _NODES, "cordon"),
            ),
        ),
        ArmadaCommand(
            "uncordon",
            "Have queues start jobs again",
            verbs=(
                queues.UNCORDON,
                _not_here("executor", "<executor_name>", "Uncordon an executor", _NODES, "uncordon"),
            ),
        ),
    ),
)
