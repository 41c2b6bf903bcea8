"""The phrases in which cases of Fluster's say what happens to a job: a table, which the page of the cases lists, too.

A phrase is looked up whole, then in parts: ``fail twice, then succeed`` is two of the table. Whatever is in none of
them is not understood, and its case is not judged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.cases import fluster_steps as steps
from tools.cases.fluster_door import Refused
from tools.cases.fluster_given import NUMBER, TIMES
from tools.cases.fluster_table import Phrase
from tools.cases.results import Skip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.cases.fluster_story import Story
    from tools.cases.fluster_table import Act


def carry_out(story: Story, when: str | Sequence[str]) -> None:
    """Do what a case says.

    Raises:
        Skip: Something of it is not understood.
    """
    phrases = [when] if isinstance(when, str) else when
    acts = [act for phrase in phrases for act in read_phrase(phrase)]
    if not story.job:
        return  # it could not even be launched
    for match, act in acts:
        try:
            act(story, match)
        except Refused as error:
            story.refused = error


def read_phrase(phrase: str) -> list[tuple[re.Match[str], Act]]:
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


def _in_table(phrase: str) -> tuple[re.Match[str], Act] | None:
    matches = ((re.fullmatch(one.pattern, phrase), one.act) for one in PHRASES)
    return next(((match, act) for match, act in matches if match is not None), None)


_AT = r"(?: ?@ ?(?P<at>\d+)(?: ?ms)?)?"
_ERROR = r"(?: error='(?P<error>[^']*)')?"
_JOB = r"(?:(?:the |a |its |first |next |another )*(?:job|program|process|task|attempt) )?"
_WORKER = r"(?:(?:the |its )?worker (?:w\d+ )?)"
_END = r"(?: \([^()]*\))?"

PHRASES = (
    Phrase(
        "dispatch [WORKER] [@MS]",
        "It is started, there and then.",
        rf"(?:mark_)?dispatch(?:ed)?(?: (?P<worker>w\d+))?{_AT}",
        steps.dispatch,
    ),
    Phrase(
        "mark_dispatched(WORKER,MS)", "The same.", r"mark_dispatched\((?P<worker>w\d+), ?(?P<at>\d+)\)", steps.dispatch
    ),
    Phrase(
        "retry, job dispatched again, next scheduling pass, now running",
        "It is started again once it may be.",
        rf"retry|{_JOB}(?:is )?dispatched again|next scheduling pass|{_JOB}(?:is )?now running",
        steps.dispatch,
    ),
    Phrase(
        "RUNNING elsewhere",
        "It is started on another worker.",
        rf"{_JOB}(?:is )?(?:RUNNING|running|dispatched) elsewhere",
        steps.elsewhere,
    ),
    Phrase(
        "exit CODE [error='TEXT'] [@MS], exit_code=CODE, exit CODE twice",
        "Its program ends so, perhaps several times.",
        rf"{_JOB}(?:exits?(?: with)?(?: code)? |exit_code=)(?!0\b)(?P<code>\d+)(?: (?P<times>{TIMES}))?{_ERROR}{_AT}",
        steps.failed,
    ),
    Phrase(
        "[job] FAILED, fails, fail twice, 3 job failures, FAILED exit CODE error='TEXT' @MS",
        "Its program fails.",
        (
            rf"(?:{_JOB}(?:FAILED|fails?|failed|crashes)(?: (?P<times>{TIMES}))?"
            rf"(?: exit (?P<code>[1-9]\d*))?{_ERROR}"
            rf"|(?:the |a |another )?job failure){_AT}"
        ),
        steps.failed,
    ),
    Phrase("3 job failures", "It fails so often.", rf"(?P<times>{NUMBER}) (?:job )?failures?", steps.failed),
    Phrase(
        "killed by signal NUMBER, killed by SIGKILL",
        "A signal ends its program; the exit code is 128 more.",
        rf"{_JOB}(?:is )?(?:killed|ended) (?:by|with) (?:signal (?P<signal>\d+)|SIG(?P<name>[A-Z]+\d?)){_END}{_AT}",
        steps.failed,
    ),
    Phrase(
        "SUCCEEDED, succeed, exit 0 [@MS]",
        "Its program ends well.",
        rf"{_JOB}(?:(?:SUCCEEDED|succeeds?|succeeded|returns)(?: exit(?:_code=| )0)?|exits? 0|exit_code=0){_AT}",
        steps.succeeded,
    ),
    Phrase(
        "WORKER_FAILED, worker dies, worker lost, worker timeout, preempted [@MS]",
        "Its worker is lost.",
        (
            rf"(?:{_JOB}WORKER_FAILED"
            rf"|{_WORKER}(?:dies|died|(?:is )?lost|times out|timed out|timeout|crashes|disappears)"
            rf"|(?:the |a |another )?worker failure|{_JOB}(?:is )?preempted)(?: (?P<times>{TIMES}))?{_END}{_ERROR}{_AT}"
        ),
        steps.lost,
    ),
    Phrase(
        "worker lost; a free healthy worker exists",
        "The same.",
        rf"{_WORKER}(?:dies|lost); a free healthy worker exists",
        steps.lost,
    ),
    Phrase(
        "3 worker failures, 3 preemptions",
        "It loses its worker so often.",
        rf"(?P<times>{NUMBER}) (?:worker failures?|preemptions?)",
        steps.lost,
    ),
    Phrase(
        "3 worker failures then the first job failure",
        "It fails in one way, then in the other, with retries left of both.",
        rf"(?P<times>{NUMBER}) (?P<kind>worker|job) failures?,? then the first (?!(?P=kind))(?:worker|job) failure",
        steps.first_of_its_kind,
    ),
    Phrase(
        "interleave 3 job failures and 4 worker failures",
        "It fails in both ways by turns.",
        rf"interleave (?P<failures>{NUMBER}) job failures? and (?P<losses>{NUMBER}) worker failures?",
        steps.interleaved,
    ),
    Phrase(
        "fail (that kind) on every attempt",
        "It fails in the way that a budget is given of, to its end.",
        r"fails? \(that kind\) on every attempt",
        steps.on_every_attempt,
    ),
    Phrase(
        "failure number NUMBER",
        "It fails after so many failures.",
        r"(?:job )?failure number (?P<number>\d+)",
        steps.nth_failure,
    ),
    Phrase(
        "bundle download raises before the process starts, RunJob RPC raises",
        "It fails before its program starts.",
        r"bundle download (?:raises|fails) before the process starts|RunJob RPC (?:raises|fails)",
        steps.not_started,
    ),
    Phrase("revert_dispatch", "What was started does not begin.", r"revert_dispatch(?:\(\))?", steps.taken_back),
    Phrase(
        "container OOM-killed",
        "Its program takes too much memory.",
        r"container OOM-?killed",
        lambda story, _: story.fail(story.ending()),
    ),
    Phrase(
        "job exceeds its deadline",
        "Its program runs for longer than it may.",
        rf"{_JOB}exceeds its (?:deadline|timeout|time limit){_AT}",
        steps.exceeds,
    ),
    Phrase(
        "controller restarts",
        "Another controller begins with what is stored.",
        r"(?:the )?controller (?:is )?(?:restarts|restarted|killed and restarted|crashes and restarts)",
        steps.restarts,
    ),
    Phrase(
        "run to end, submit and wait",
        "Its program does what is given until it has ended.",
        r"run to (?:the )?end|submit and wait",
        lambda story, _: story.run(),
    ),
    Phrase(
        "job re-queued, job retried",
        "It waits to be run again.",
        rf"{_JOB}(?:is )?(?:re-?queued|retried)",
        steps.stands_again,
    ),
    Phrase(
        "terminate [(reason 'TEXT')], cancel job",
        "A user ends it.",
        r"(?:terminate|cancel|kill)(?: (?:the )?job)?(?: \(reason '(?P<reason>[^']*)'\))?(?: again)?|TerminateJob",
        steps.terminate,
    ),
    Phrase(
        "terminate during the back-off wait",
        "A user ends it while it waits.",
        r"terminate during (?:the )?back-?off(?: wait)?",
        steps.terminate,
    ),
    Phrase(
        "advance the clock NUMBER s, NUMBER s pass [without a worker]",
        "Time passes.",
        (
            r"advance the clock (?:by )?(?P<seconds>\d+(?:\.\d+)?) ?s"
            r"|(?P<passed>\d+(?:\.\d+)?) ?s(?:econds)? pass(?P<without> without a (?:free )?worker)?"
        ),
        steps.passes,
    ),
    Phrase(
        "worker WORKER reports FAILED exit CODE for attempt NUMBER [afterwards]",
        "A worker tells of an attempt.",
        (
            r"(?:worker )?(?P<worker>w\d+) reports (?P<state>FAILED|SUCCEEDED)(?: exit (?P<code>\d+))?"
            r" for attempt (?P<attempt>\d+)(?: (?:afterwards|again))?"
        ),
        steps.report,
    ),
    Phrase(
        "report [attempt_id=NUMBER] [FAILED] [exit CODE] [from WORKER]",
        "The same, of the first attempt where it says none.",
        (
            r"report(?: attempt_id=(?P<attempt>\d+))?(?: (?P<state>FAILED|SUCCEEDED))?(?: exit (?P<code>\d+))?"
            r"(?: from (?P<worker>w\d+))?"
        ),
        steps.report,
    ),
    Phrase("wait, reconcile", "It ends while its worker cannot say so.", r"wait|reconcile", steps.ends_unheard),
    Phrase("loop tick", "Its worker is silent for as long as is given.", r"loop tick", steps.silent),
    Phrase(
        "transition to UNSCHEDULABLE",
        "It finds no place in time.",
        r"transition to UNSCHEDULABLE",
        lambda story, _: story.time_out(),
    ),
    Phrase(
        "find_assignments [at MS then at MS]",
        "What waits is placed.",
        r"find_assignments(?:\(now\))?(?: at (?P<first>\d+)(?:,? then at (?P<second>\d+))?)?",
        steps.assignments,
    ),
    Phrase(
        "submit same name",
        "Another is launched by that name.",
        r"(?:submit|launch)(?: a job of)?(?: the)? same name(?: again)?",
        steps.submit_again,
    ),
    Phrase(
        "[late] RegisterEndpoint [from its process]",
        "Its program says where it answers.",
        r"(?:late )?RegisterEndpoint(?: from its process)?",
        lambda story, _: story.register(),
    ),
    Phrase("GetJobStatus, read attempt", "It is looked at.", r"GetJobStatus|read attempts?|get status", steps.look),
    Phrase("submit", "It is launched.", r"submit|launch|LaunchJob", lambda _, __: None),
    Phrase(
        "wait(timeout)", "A client waits for it.", r"wait\((?:timeout(?:=[\d.]+)?)?\)|client\.wait\(.*\)", steps.wait
    ),
)
"""The first that fits counts."""
