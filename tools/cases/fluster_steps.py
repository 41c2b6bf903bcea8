"""What can happen in cases of Fluster's: a table of phrases, each with what it makes happen to a job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.api.fluster.jobs import TERMINATED
from holdfast.compiled.codec import load_spec
from holdfast.dialects.fluster.retry import FAILURE, POLICY
from holdfast.domain.classify import classify
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import RetryHistory, RetrySettings
from holdfast.domain.workloads.gang.policies import compiled_for
from tools.cases.fluster_door import Refused
from tools.cases.fluster_given import number_of
from tools.cases.fluster_waiting import waited
from tools.cases.fluster_world import LOST, NEVER_STARTED, exit_of
from tools.cases.results import Skip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.cases.fluster_story import Story

Step = "Callable[[Story, re.Match[str]], None]"
_AT = r"(?: @(?P<at>\d+)(?:ms)?)?"
_ERROR = r"(?: error='(?P<error>[^']*)')?"


def carry_out(story: Story, when: str | Sequence[str]) -> None:
    """Do what a case says.

    Raises:
        Skip: Something of it is not understood.
    """
    steps = [step for phrase in ([when] if isinstance(when, str) else when) for step in read_steps(phrase)]
    if not story.job:
        return  # it could not even be launched
    for match, act in steps:
        try:
            act(story, match)
        except Refused as error:
            story.refused = error


def read_steps(phrase: str) -> list[tuple[re.Match[str], Callable[[Story, re.Match[str]], None]]]:
    """Find what a phrase means: as it is in the table, or one after the other what its parts mean.

    Raises:
        Skip: Something of it is not understood.
    """
    whole = _in_table(phrase)
    if whole is not None:
        return [whole]
    found = [_in_table(part) for part in _PARTS.split(phrase)]
    known = [one for one in found if one is not None]
    if len(found) == 1 or len(known) < len(found):
        msg = f"not understood: when {phrase!r}"
        raise Skip(msg)
    return known


_PARTS = re.compile(r"(?:,|;|,? and)? then |[,;] (?:and )?| and ")


def _in_table(phrase: str) -> tuple[re.Match[str], Callable[[Story, re.Match[str]], None]] | None:
    matches = ((re.fullmatch(pattern, phrase), act) for pattern, act in STEPS)
    return next(((match, act) for match, act in matches if match is not None), None)


def _at(match: re.Match[str]) -> float | None:
    found = match.groupdict().get("at")
    return None if found is None else int(found) / 1000


def _dispatch(story: Story, match: re.Match[str]) -> None:
    story.dispatch(match.groupdict().get("worker"), _at(match))
    story.at["after_dispatch"] = story.status


def _failed(story: Story, match: re.Match[str]) -> None:
    groups = match.groupdict()
    story.fail(exit_of(int(groups.get("code") or 1), groups.get("error") or ""), _at(match))


def _lost(story: Story, match: re.Match[str]) -> None:
    story.fail(LOST, _at(match))


def _exits(story: Story, match: re.Match[str]) -> None:
    for _ in range(number_of(match["times"] or "once")):
        story.fail(exit_of(int(match["code"])))


def _fails(story: Story, match: re.Match[str]) -> None:
    for _ in range(int(match["times"])):
        story.fail(exit_of(1))


def _on_every_attempt(story: Story, _: re.Match[str]) -> None:
    retry = story.given.retry
    outcome = exit_of(1) if "max_retries_failure" in retry or not retry else LOST
    while story.status["state"] not in {"FAILED", "WORKER_FAILED"}:
        story.fail(outcome)


def _interleaved(story: Story, match: re.Match[str]) -> None:
    failures, losses = int(match["failures"]), int(match["losses"])
    for turn in range(max(failures, losses)):
        if turn < losses:
            story.fail(LOST)
        if turn < failures:
            story.fail(exit_of(1))


def _losses_then_failure(story: Story, match: re.Match[str]) -> None:
    if "max_retries_failure" not in story.given.retry:
        story.launch_again({**story.given.retry, "max_retries_failure": 1})
    for _ in range(int(match["losses"])):
        story.fail(LOST)
    story.delays.clear()
    story.fail(exit_of(1))


def _terminate(story: Story, match: re.Match[str]) -> None:
    if match.groupdict().get("reason") not in {None, TERMINATED}:
        msg = f"not understood: nobody can say {match[0]!r} by the door"
        raise Skip(msg)
    story.terminate()


def _terminate_in_backoff(story: Story, match: re.Match[str]) -> None:
    story.terminate()
    story.pass_s(float(match["seconds"]))


def _report(story: Story, match: re.Match[str]) -> None:
    """Have a worker tell of an attempt once more, or of one that is not its own."""
    groups = match.groupdict()
    attempt, worker = int(groups.get("attempt") or 0), groups.get("worker") or story.given.worker
    known = [] if story.given.unknown else story.world.started(story.job)
    orders = [order for order in known if order.attempt == attempt + 1]
    uid = orders[0].uid if orders else f"nobody-{attempt + 1}-0-1"
    outcome = exit_of(0) if groups.get("state") == "SUCCEEDED" else exit_of(int(groups.get("code") or 1))
    story.world.report(worker, uid, outcome)


def _not_started(story: Story, _: re.Match[str]) -> None:
    story.fail(NEVER_STARTED)


def _delivered_but_refused(story: Story, _: re.Match[str]) -> None:
    story.dispatch()
    story.world.end(story.job, NEVER_STARTED)
    story.world.settle()


def _nth_failure(story: Story, match: re.Match[str]) -> None:
    """Decide about a failure after so many others, which need not all happen."""
    spec = load_spec(story.world.job(story.job).spec)
    used = int(match["number"]) - 1
    history = RetryHistory(story.job, used + 1, ((f"{POLICY}/{FAILURE}", used),), used)
    decision = decide(compiled_for(spec, []), classify(exit_of(1)), history, RetrySettings())
    story.delays.append(decision.delay_s)


def _taken_back(story: Story, _: re.Match[str]) -> None:
    story.world.close()
    story.fail(NEVER_STARTED)
    story.at["after_revert"] = story.status


def _ends_unheard(story: Story, _: re.Match[str]) -> None:
    """Let it end while its worker cannot say so, and then can."""
    if not story.given.loses_a_report:
        msg = "not understood: nothing is said of what is reported"
        raise Skip(msg)
    for wire in story.world.wires.values():
        wire.lost = 1
    story.world.end(story.job, exit_of(0))
    story.world.settle()
    story.pass_s(5.0)


def _submit_again(story: Story, _: re.Match[str]) -> None:
    """Launch another job of the same name, which asks for something else."""
    story.launch(story.name, {"max_retries_failure": 77})


def _stands_again(story: Story, _: re.Match[str]) -> None:
    """Make sure that it waits to be run again."""
    if story.status["state"] != "PENDING":
        story.surprises.append(f"it is {story.status['state']}, not PENDING")


def _elsewhere(story: Story, _: re.Match[str]) -> None:
    """Let it be started on another worker than before."""
    before = story.world.started(story.job)[-1].node
    story.dispatch(next(name for name in story.world.workers if name != before))


def _assignments(story: Story, match: re.Match[str]) -> None:
    moments = [int(each) for each in (match["first"], match["second"]) if each]
    if not moments:
        story.pass_s(story.given.waited_s)
        return
    failed_at_s = story.given.failed_at_s
    if failed_at_s is None:
        msg = "not understood: nothing is said of when it failed"
        raise Skip(msg)
    story.launch_again({**story.given.retry, "max_retries_failure": 1})
    story.fail(exit_of(1), failed_at_s)
    before = story.executions
    for moment in moments:
        story.world.run_to(moment / 1000)
        story.world.settle()
        began = story.executions > before
        story.at[f"at_{moment}"] = {**story.status, "assigned": began}


def _silent(story: Story, _: re.Match[str]) -> None:
    """Let the worker that has it be silent for as long as is given, while others tell of themselves."""
    if story.status["state"] == "PENDING":
        story.dispatch("w1")
    story.world.wires["w1"].cut = True
    until = story.world.clock.now() + story.given.silent_s
    while story.world.clock.now() < until:
        story.world.run_to(min(until, story.world.clock.now() + 10))
    story.world.settle()


def _dies_after_running(story: Story, _: re.Match[str]) -> None:
    story.dispatch()
    story.pass_s(story.given.ran_s)
    story.fail(LOST)
    story.dispatch()


def _twice_and_running(story: Story, match: re.Match[str]) -> None:
    for word in match[0].split(", "):
        if word == "fail":
            story.fail(exit_of(1))
        else:
            story.dispatch()


def _wait(story: Story, _: re.Match[str]) -> None:
    """Wait as a client does, a moment."""
    story.waited = waited(lambda: story.world.door.asked(story.name))


STEPS: tuple[tuple[str, Callable[[Story, re.Match[str]], None]], ...] = (
    (r"(?:mark_)?dispatch(?:ed)?(?: (?P<worker>w\d+))?" + _AT, _dispatch),
    (r"exit_code=(?P<code>\d+)" + _ERROR + _AT, _failed),
    (r"exit (?P<code>\d+)" + _ERROR + _AT, _failed),
    (r"FAILED" + _ERROR + _AT, _failed),
    (r"WORKER_FAILED(?: \(worker failure\))?" + _ERROR + _AT, _lost),
    (r"exit (?P<code>\d+) (?P<times>once|twice|\w+ times)", _exits),
    (r"fail (?P<times>\d+) times", _fails),
    (r"fail \(that kind\) on every attempt", _on_every_attempt),
    (r"interleave (?P<failures>\d+) job failures and (?P<losses>\d+) worker failures", _interleaved),
    (r"(?P<losses>\d+) worker failures, then the first job failure", _losses_then_failure),
    (r"run to end|submit and wait", lambda story, _: story.run()),
    (r"terminate(?: \(reason '(?P<reason>[^']*)'\))?|cancel job", _terminate),
    (
        r"terminate during the back-off wait, then advance the clock (?P<seconds>\d+) s",
        _terminate_in_backoff,
    ),
    (
        (
            r"worker (?P<worker>w\d+) reports (?P<state>FAILED|SUCCEEDED)(?: exit (?P<code>\d+))?"
            r" for attempt (?P<attempt>\d+)(?: afterwards)?"
        ),
        _report,
    ),
    (r"report(?: from (?P<worker>w\d+))?", _report),
    (r"wait|reconcile", _ends_unheard),
    (r"mark_dispatched\((?P<worker>w\d+),(?P<at>\d+)\)", _dispatch),
    (r"revert_dispatch", _taken_back),
    (r"report attempt_id=(?P<attempt>\d+) (?P<state>FAILED|SUCCEEDED) from (?P<worker>w\d+)", _report),
    (r"bundle download raises before the process starts|RunJob RPC raises", _not_started),
    (r"failure number (?P<number>\d+)", _nth_failure),
    (r"transition to UNSCHEDULABLE", lambda story, _: story.time_out()),
    (r"(?:submit|launch)(?: a job of)?(?: the)? same name(?: again)?", _submit_again),
    (rf"worker (?:timeout|times out|dies|is lost)(?: \(worker failure\))?{_AT}", _lost),
    (r"(?:the )?job (?:is )?(?:re-?queued|retried)", _stands_again),
    (r"(?:RUNNING|running|dispatched) elsewhere", _elsewhere),
    (r"(?:late )?RegisterEndpoint(?: from its process)?", lambda story, _: story.register()),
    (r"find_assignments(?:\(now\))?(?: at (?P<first>\d+)(?:, then at (?P<second>\d+))?)?", _assignments),
    (r"loop tick", _silent),
    (r"worker dies, job re-queued, next scheduling pass", _dies_after_running),
    (r"(?:fail|retry|now running)(?:, (?:fail|retry|now running))+", _twice_and_running),
    (r"container OOM-killed", lambda story, _: story.fail(story.ending())),
    (r"worker lost; a free healthy worker exists", _lost),
    (r"GetJobStatus|read attempt|submit", lambda _, __: None),
    (r"wait\((?:timeout(?:=[\d.]+)?)?\)|client\.wait\(.*\)", _wait),
)
"""Each a pattern of the whole phrase, and what it makes happen."""
