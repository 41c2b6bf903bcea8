"""What can happen to a job in cases of Fluster's; ``fluster_phrases`` says in which words cases ask for it."""

from __future__ import annotations

from signal import Signals
from typing import TYPE_CHECKING

from holdfast.api.fluster.jobs import TERMINATED
from holdfast.compiled.codec import load_spec
from holdfast.dialects.fluster.retry import FAILURE, POLICY
from holdfast.domain.classify import classify
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import RetryHistory, RetrySettings
from holdfast.domain.workloads.gang.policies import compiled_for
from tools.cases.fluster_given import number_of
from tools.cases.fluster_waiting import waited
from tools.cases.fluster_world import LOST, NEVER_STARTED, OVERDUE, exit_of, killed_by
from tools.cases.results import Skip

if TYPE_CHECKING:
    import re

    from tools.cases.fluster_story import Story


_HIGHEST_CODE, _HIGHEST_SIGNAL = 255, 64


def at(match: re.Match[str]) -> float | None:
    """Return the instant that a phrase names, in seconds."""
    found = match.groupdict().get("at")
    return None if found is None else int(found) / 1000


def times(match: re.Match[str]) -> int:
    """Return how often something happens; without a word of it, once."""
    return number_of(match.groupdict().get("times") or "once")


def dispatch(story: Story, match: re.Match[str]) -> None:
    """Let it be started."""
    story.dispatch(match.groupdict().get("worker"), at(match))
    story.at["after_dispatch"] = story.status


def failed(story: Story, match: re.Match[str]) -> None:
    """Let its program fail, with an exit code, by a signal, or just so."""
    groups = match.groupdict()
    number = int(groups.get("signal") or 0) or (groups.get("name") and Signals[f"SIG{groups['name']}"].value)
    code = int(groups.get("code") or 1)
    if code > _HIGHEST_CODE or (number or 0) > _HIGHEST_SIGNAL:
        msg = f"not understood: no program can {match[0]!r}"
        raise Skip(msg)
    for _ in range(times(match)):
        story.fail(killed_by(number) if number else exit_of(code, groups.get("error") or ""), at(match))


def succeeded(story: Story, match: re.Match[str]) -> None:
    """Let its program end well."""
    story.succeed(at(match))


def lost(story: Story, match: re.Match[str]) -> None:
    """Let its worker be lost, once it has run for as long as is given."""
    if story.given.ran_s:
        story.dispatch()
        story.pass_s(story.given.ran_s)
    for _ in range(times(match)):
        story.fail(LOST, at(match))


def first_of_its_kind(story: Story, match: re.Match[str]) -> None:
    """Let it fail in one way again and again, then once in the other; it has retries of both."""
    budgets = {"max_retries_failure": 100, "max_retries_preemption": 100}
    if missing := budgets.keys() - story.given.retry.keys():
        story.launch_again({**story.given.retry, **{name: budgets[name] for name in missing}})
    one, other = (exit_of(1), LOST) if match["kind"] == "job" else (LOST, exit_of(1))
    for outcome in [one] * times(match) + [other]:
        story.fail(outcome)


def exceeds(story: Story, match: re.Match[str]) -> None:
    """Let its program run for longer than it may."""
    story.fail(OVERDUE, at(match))


def restarts(story: Story, _: re.Match[str]) -> None:
    """Have another controller begin where one was."""
    story.world.restart()


def passes(story: Story, match: re.Match[str]) -> None:
    """Let time pass, perhaps with no worker that takes anything."""
    if match.groupdict().get("without"):
        story.world.close()
    story.pass_s(float(match["seconds"] or match["passed"]))


def look(story: Story, _: re.Match[str]) -> None:
    """Ask how it does; also where nobody knows it."""
    if story.given.unknown:
        story.world.door.asked(story.given.name)


def on_every_attempt(story: Story, _: re.Match[str]) -> None:
    """Let it fail in the way that is counted, until it has no retry left."""
    retry = story.given.retry
    outcome = exit_of(1) if "max_retries_failure" in retry or not retry else LOST
    while story.status["state"] not in {"FAILED", "WORKER_FAILED"}:
        story.fail(outcome)


def interleaved(story: Story, match: re.Match[str]) -> None:
    """Let it fail in both ways by turns."""
    failures, losses = number_of(match["failures"]), number_of(match["losses"])
    for turn in range(max(failures, losses)):
        if turn < losses:
            story.fail(LOST)
        if turn < failures:
            story.fail(exit_of(1))


def terminate(story: Story, match: re.Match[str]) -> None:
    """Have a user end it."""
    if match.groupdict().get("reason") not in {None, TERMINATED}:
        msg = f"not understood: nobody can say {match[0]!r} by the door"
        raise Skip(msg)
    story.terminate()


def report(story: Story, match: re.Match[str]) -> None:
    """Have a worker tell of an attempt once more, or of one that is not its own."""
    groups = match.groupdict()
    attempt, worker = int(groups.get("attempt") or 0), groups.get("worker") or story.given.worker
    known = [] if story.given.unknown else story.world.started(story.job)
    orders = [order for order in known if order.attempt == attempt + 1]
    uid = orders[0].uid if orders else f"nobody-{attempt + 1}-0-1"
    outcome = exit_of(0) if groups.get("state") == "SUCCEEDED" else exit_of(int(groups.get("code") or 1))
    story.world.report(worker, uid, outcome)


def not_started(story: Story, _: re.Match[str]) -> None:
    """Have it fail before its program begins."""
    story.fail(NEVER_STARTED)


def nth_failure(story: Story, match: re.Match[str]) -> None:
    """Decide about a failure after so many others, which need not all happen."""
    spec = load_spec(story.world.job(story.job).spec)
    used = int(match["number"]) - 1
    history = RetryHistory(story.job, used + 1, ((f"{POLICY}/{FAILURE}", used),), used)
    decision = decide(compiled_for(spec, []), classify(exit_of(1)), history, RetrySettings())
    story.delays.append(decision.delay_s)


def taken_back(story: Story, _: re.Match[str]) -> None:
    """Have what was started not begin after all, and nothing started again at once."""
    story.world.close()
    story.fail(NEVER_STARTED)
    story.at["after_revert"] = story.status


def ends_unheard(story: Story, _: re.Match[str]) -> None:
    """Let it end while its worker cannot say so, and then can."""
    if not story.given.loses_a_report:
        msg = "not understood: nothing is said of what is reported"
        raise Skip(msg)
    for wire in story.world.wires.values():
        wire.lost = 1
    story.world.end(story.job, exit_of(0))
    story.world.settle()
    story.pass_s(5.0)


def submit_again(story: Story, _: re.Match[str]) -> None:
    """Launch another job of the same name, which asks for something else."""
    story.launch(story.name, {"max_retries_failure": 77})


def stands_again(story: Story, _: re.Match[str]) -> None:
    """Make sure that it waits to be run again."""
    if story.status["state"] != "PENDING":
        story.surprises.append(f"it is {story.status['state']}, not PENDING")


def elsewhere(story: Story, _: re.Match[str]) -> None:
    """Let it be started on another worker than before."""
    before = story.world.started(story.job)[-1].node
    story.dispatch(next(name for name in story.world.workers if name != before))


def assignments(story: Story, match: re.Match[str]) -> None:
    """Place what waits: after it has waited for as long as is given, or at instants after it failed."""
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


def silent(story: Story, _: re.Match[str]) -> None:
    """Let the worker that has it be silent for as long as is given, while others tell of themselves."""
    if story.status["state"] == "PENDING":
        story.dispatch("w1")
    story.world.wires["w1"].cut = True
    until = story.world.clock.now() + story.given.silent_s
    while story.world.clock.now() < until:
        story.world.run_to(min(until, story.world.clock.now() + 10))
    story.world.settle()


def wait(story: Story, _: re.Match[str]) -> None:
    """Wait as a client does, a moment."""
    story.waited = waited(lambda: story.world.door.asked(story.name))
