"""Every invariant as a name and a sentence, which a world that breaks it reports."""

from __future__ import annotations

from typing import NoReturn

from tools.simulate.trace import BrokenInvariant

INVARIANTS: dict[str, str] = {
    "no-job-lost": (
        "A job that was accepted stays stored, and until it has ended the controller knows it or has yet to be told."
    ),
    "never-twice": (
        "A program never runs beside a program of another attempt, or of another placement, of its job; nor, where "
        "programs come and go as pods, beside one in its own place."
    ),
    "started-once": "A run's program is started at most once, whatever is repeated, lost or forgotten.",
    "stored-first": "A program is started only for a run that is stored: nothing is handed out before its commit.",
    "stored-last": "A result is forgotten by its executor only when the controller has it stored.",
    "true-success": (
        "A job has succeeded only if every program of its last placement really ended well; a pod counts as succeeded "
        "only if its program did."
    ),
    "terminal-absorbs": "A job, an attempt, a run or a job set that has ended never changes again.",
    "judged-once": (
        "Every failed attempt has one decision and no other attempt has any; counters are the decisions' sums."
    ),
    "limits-hold": "No rule grants more retries than its limit, and no job gets more than the global cap in force.",
    "explained": "Every decision can be explained: rules and counts come out the same again.",
    "back-off-waits": "No program of a retry starts before the retry is due, unless a person released the job.",
    "in-total-time": "No retry is granted that could only begin after its job's total deadline.",
    "stops-together": "When a gang is to stop, all of its ranks are told so at once.",
    "asked-for": "An attempt follows another only if that one's decision, or a person, said so; numbers have no gap.",
    "cancelled-stays": "A job whose cancellation was accepted is never retried: it ends cancelled, or well.",
    "started-goes-on": "A job that is to be cancelled unless it has started is not, once it has ever had a place.",
    "capacity-adds-up": (
        "What is charged is what unfinished runs ask for, by place and by queue, and no place is overbooked."
    ),
    "no-node-overloaded": "The programs that really run on a node never ask for more than it has.",
    "devices-apart": (
        "The programs that really run never have more of a device than there is of it, nor more than the whole cluster "
        "has of a name."
    ),
    "devices-as-asked": (
        "A program has exactly the devices that are stored with its run: as many as it asks for, on its node, of the "
        "kind it asks for, and healthy."
    ),
    "cordoned-stays": "No device is given out while it is cordoned, nor while it is known not to be healthy.",
    "devices-avoided": (
        "A retry that avoids the devices on which its job failed is given others, where any could ever run it."
    ),
    "closed-stays": (
        "Nothing is placed on a node that is drained, nor on one that is cordoned, but for pods that begin again in "
        "the place they have there."
    ),
    "short-stays-empty": (
        "A node that is short of something gets one job at a time, until it has refused nothing for 30 s."
    ),
    "short-costs-nothing": (
        "An attempt that met a shortage of a node is made again whatever policies say, and counts against no limit."
    ),
    "tried-once": (
        "A retry that is kept off the nodes on which its job was tried is placed on none of them, and those are all on "
        "which a program of it may have run."
    ),
    "never-again": (
        "A job that says so is not run again where nobody knows how a run of it ended, unless a rule or a person says "
        "otherwise."
    ),
    "queue-limits": "A queue starts nothing while it is paused, and nothing that takes it over its limits.",
    "sets-judge-once": (
        "Every failed attempt at a job of a set is judged once, as long as the set goes on, and nothing else is judged."
    ),
    "sets-add-up": "What a job set counts is the sum of its logged decisions and of the restarts people asked for.",
    "sets-within-budgets": "No restart is granted beyond maxRestarts, nor beyond a rule's or replicated job's limit.",
    "generations-apart": (
        "Under BlockingRecreate and InPlaceRestart, no program of a generation of a job set starts while one of an "
        "earlier generation runs."
    ),
    "starts-in-order": (
        "Nothing of a replicated job is handed out before all it has to wait for has begun, or is complete, as asked."
    ),
    "tasks-once": (
        "Each task of an array is made once, for an index that the array has; no more exist at once than may run, and "
        "none is made of an array that is to stop."
    ),
    "arrays-add-up": "An array ends when its tasks have, as its rules say, and counts each of them once.",
    "held-stays": "No task of an array starts, and none is made, while it is held.",
    "reruns-follow": (
        "A task is run again once it has ended, in one array at a time, and that one gets the checkpoints of this task."
    ),
    "waits-for-it": (
        "Nothing starts before all has happened that it waits for, unless it is to run, or a person released it, once "
        "that can never happen; and nothing is cancelled for what may still happen."
    ),
    "silence-ends": (
        "A run that is silent for longer than its job allows is ended as stalled, unless it ends before, and one that "
        "talks never is."
    ),
    "warned-first": "Nobody who asks for a warning is ended for a deadline or for preemption without it.",
    "taken-when-asked": "The place of a job is taken at most as often as somebody asks for it.",
    "told-once": (
        "Whoever asks to be told of what becomes of a job or a job set is told of each outcome once, by the commit "
        "that makes it true."
    ),
    "told-at-last": (
        "What is to be told is delivered in the end, always under the same id and in the same words, whoever is killed."
    ),
    "domains-exclusive": (
        "A job with exclusive topology has one domain, and no other such job has a program in it at the same time."
    ),
    "nothing-outlives": "No program of a job made of pods outlives its job, and no unfinished job its job set.",
    "replay": "A job's state is the sum of its events.",
    "written-once": "What happened is written once: no event, and no entry in the log of a job set, comes twice.",
    "one-writer": "A controller that another one has replaced can commit nothing.",
    "all-ends": (
        "Once faults stop, every job ends soon, or waits for a person, for a place that does not exist, or for a job "
        "that does."
    ),
    "nothing-left": "When everything has ended, nothing runs, nothing is charged, and no executor keeps a result.",
    "nobody-quarantined": "Looking after a workload never fails in the controller itself.",
    "never-raises": "No step of the controller or of an executor raises what its loop does not expect.",
    "durable": "What is read from the store is what was committed, in every life of the controller.",
}
"""By name."""


def refuse(name: str, detail: str) -> NoReturn:
    """Say that an invariant is broken.

    Raises:
        BrokenInvariant: Always.
    """
    raise BrokenInvariant(name, INVARIANTS[name], detail)
