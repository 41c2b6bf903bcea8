"""Job sets on the command line: what is sent, what is said, and how commands end; against a server that is a script."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast.cli.commands.why import print_pods
from holdfast.cli.main import parse
from holdfast.cli.nouns import Noun, read_noun
from holdfast.cli.render.decisions import attempt_line
from holdfast.cli.render.describe import job_facts, job_sections
from holdfast.cli.render.jobsets import jobset_facts, jobset_sections, jobset_table
from holdfast.cli.render.output import Output
from holdfast.cli.render.words import age
from holdfast.cli.targets import job_or_set
from holdfast.cli.watching.follow import Follower, LogSelection
from holdfast.domain.policy.model import SetAction
from holdfast.errors import AlreadyExists, InvalidManifest, InvalidRequest, NotFound, Problem
from holdfast.wire.jobs import JobView, OwnerView
from holdfast.wire.jobsets import JobSetView
from tests.unit.jobset_server import AT, JOBSET, SET, Server, job, said, surroundings

if TYPE_CHECKING:
    from holdfast.client import Client

KEP = sorted((Path(__file__).parents[1] / "data" / "kep-262").glob("*.yaml"))
HOUR, DAY = 3600, 86400


@pytest.mark.parametrize(
    "line",
    [
        "apply -f jobset.yaml --lenient",
        "create -f jobset.yaml --lenient --dry-run",
        "submit -f jobset.yaml --wait --timeout 1h",
        "get jobsets a b -o wide",
        "get jobs --jobset train",
        "describe jobset train",
        "why jobset train --job train-workers-0",
        "wait jobset train --timeout 1h",
        "suspend jobset a b",
        "resume js a",
        "restart replicatedjob train workers",
        "delete jobset train --no-wait",
    ],
)
def test_the_documented_lines_parse(line: str) -> None:
    parsed = parse(line.split())
    assert parsed is not None
    assert parsed[0].name == line.split(maxsplit=1)[0]


@pytest.mark.parametrize("words", [["jobset/train"], ["JobSet", "train"], ["js/train", "-f"], ["--jobset", "js/train"]])
@pytest.mark.parametrize("command", ["logs", "events"])
def test_logs_and_events_of_a_set_are_asked_for_by_its_kind_and_name(command: str, words: list[str]) -> None:
    parsed = parse([command, *words])
    assert parsed is not None
    options = parsed[1]
    assert options.jobset == "train" if command == "logs" or "--jobset" in words else options.what[-1] == "train"
    assert not getattr(options, "jobs", None)


@pytest.mark.parametrize(
    "line",
    [
        "logs jobset/a jobset/b",
        "logs jobset/a job/b",
        "logs a jobset/b",
        "logs jobset/a --jobset b",
        "get jobs jobset/a",
    ],
)
def test_a_set_is_not_named_among_jobs_or_beside_another(line: str) -> None:
    with pytest.raises(InvalidRequest):
        parse(line.split())


@pytest.mark.parametrize("spelling", ["jobset", "jobsets", "js", "JobSet", "job-set"])
def test_a_job_set_may_be_spelt_as_elsewhere(spelling: str) -> None:
    assert read_noun(spelling) == Noun.JOB_SET


@pytest.mark.parametrize(
    ("words", "noun", "names"),
    [
        (["jobset", "a"], Noun.JOB_SET, ["a"]),
        (["js", "a", "b"], Noun.JOB_SET, ["a", "b"]),
        (["job", "a"], Noun.JOB, ["a"]),
        (["jobset"], Noun.JOB, ["jobset"]),
        (["a", "jobset"], Noun.JOB, ["a", "jobset"]),
        (["queue", "a"], Noun.JOB, ["queue", "a"]),
    ],
)
def test_the_first_of_several_words_may_be_a_kind(words: list[str], noun: str, names: list[str]) -> None:
    target = job_or_set(words)
    assert (target.noun, target.names) == (noun, names)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("suspend queue a", "KIND: 'queue' cannot be used with this command; allowed: jobsets"),
        ("restart queue a", "KIND: 'queue' is unknown; allowed: jobset, replicatedjob, job"),
        (
            "restart replicatedjob train",
            "NAME: 'train' does not name a replicated job; hint: holdfast restart replicatedjob SET",
        ),
        ("restart replicatedjob train workers more", "'train' does not name a replicated job"),
        ("wait jobset train --for Held", "--for: 'Held' is unknown; allowed: terminal, Waiting, Pending, Running"),
        ("why jobset train other", "NAME: 2 are given: train, other"),
        ("why jobset train --attempt 2", "--attempt: does not apply to job sets"),
        ("why train --job x", "--job: does not apply to jobs"),
        ("get jobsets --state Held", "--state: 'Held' is unknown; allowed: Waiting, Pending, Running"),
        ("get queues --jobset a", "--jobset: only filters lists of jobs"),
        ("get jobsets -o xml", "allowed: table, wide, json, yaml, csv, name"),
        ("delete queue a --timeout 1s", "--timeout: only limits the wait"),
        ("create queue a --lenient", "--lenient: only applies to files"),
    ],
)
def test_a_wrong_line_says_what_is_wrong_and_exits_with_2(line: str, says: str) -> None:
    found = said(line)
    assert says in found.err
    assert (found.code, found.server.asked) == (2, [])


def test_the_table_has_the_columns_kubectl_has() -> None:
    done = JobSetView.model_validate({**SET, "terminal": "Completed", "suspend": True})
    columns, rows = jobset_table([JobSetView.model_validate(SET), done], now_s=1767225600.0 + 320)
    assert columns == ("NAME", "TERMINALSTATE", "RESTARTS", "COMPLETED", "SUSPENDED", "AGE")
    assert rows == [
        ("train", "", "3", "", "false", "5m20s"),
        ("train", "Completed", "3", "True", "true", "5m20s"),
    ]


def test_a_wide_table_says_how_jobs_stand_and_what_was_counted() -> None:
    columns, rows = jobset_table([JobSetView.model_validate(SET)], now_s=0.0, wide=True)
    row = dict(zip(columns, rows[0], strict=True))
    assert (row["STATE"], row["JOBS"], row["READY"], row["COUNTED"], row["QUEUE"]) == (
        "Running",
        "2",
        "1",
        "2/10",
        "ml",
    )


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        *[(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (320, "5m20s"), (9000, "150m"), (11100, "3h5m")],
        *[(8 * HOUR, "8h"), (49 * HOUR, "2d1h"), (10 * DAY, "10d"), (800 * DAY, "2y70d"), (9 * 365 * DAY, "9y")],
    ],
)
def test_an_age_reads_as_in_kubectl(seconds: int, shown: str) -> None:
    assert age(AT, 1767225600.0 + seconds) == shown


def test_job_sets_are_listed_and_got_in_every_form() -> None:
    assert said("get jobsets -o name").out == "jobset/train\n"
    assert said("get js").out.splitlines()[1].split() == ["train", "3", "false", "100s"]
    assert json.loads(said("get jobset train -o json").out)["name"] == "train"
    assert [one["id"] for one in json.loads(said("get jobsets train train -o json").out)["items"]] == ["01s", "01s"]
    assert said("get jobset other").code == 3


def test_describe_says_conditions_counts_pods_decisions_and_events() -> None:
    text = said("describe jobset train").out
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "Restarts: 3 of the whole set; 2 counted of 10 allowed" in lines
    assert "Left failed: train-workers-1" in lines
    assert f"RestartingJobSet False RestartJobSet {AT[:19]}Z again" in lines
    assert "workers 2 1 2 0 0 0 1 + 2 of jobs 1 at once" in lines
    assert "Jobs (the first 1 of 2; all: holdfast get jobs --jobset train)" in lines
    assert "train-workers-0 Running 4 0 2 active, 1 succeeded" in lines
    decision = "train-workers-0 3 preempted RestartJobSet in 2s yes maxRestarts 2/10 applying RestartJobSet"
    assert f"{AT[:19]}Z {decision}" in lines
    assert f"Warning RestartedByUser {AT[:19]}Z a user restarts the jobset" in lines


def test_a_set_without_a_failure_policy_says_so() -> None:
    one = JobSetView.model_validate({**SET, "max_restarts": None, "left_failed": []})
    facts = dict(jobset_facts(one))
    assert "no failure policy" in facts["Restarts"]
    assert "Left failed" not in facts
    assert [title for title, _ in jobset_sections(one, [], now_s=0.0)][-1].startswith("Jobs")


OF_ARRAY = {"job_set": None, "array": "01a", "array_index": 7}


@pytest.mark.parametrize(
    ("fields", "title", "place"),
    [
        ({"owner": {"kind": "jobset", "id": "01s", "name": "a"}}, "Job set", "a, replicatedJob workers, index 0"),
        ({"owner": {"kind": "", "id": "01s"}}, "Part of", "01s, workers, index 0"),
        ({**OF_ARRAY, "owner": {"kind": "array", "id": "01a", "name": "sweep"}}, "Array", "sweep, index 7"),
    ],
)
def test_a_job_shows_what_it_is_part_of_in_the_word_of_that_kind(
    fields: dict[str, object], title: str, place: str
) -> None:
    shown = dict(job_facts(JobView.model_validate({**job((0, "a")).model_dump(), **fields})))
    assert shown[title] == place


def test_a_job_made_of_pods_shows_its_pods_conditions_and_place() -> None:
    owner = OwnerView(kind="jobset", id="01s")
    one = job((0, "a")).model_copy(update={"owner": owner})
    facts = dict(job_facts(one))
    assert facts["Job set"] == "01s, replicatedJob workers, index 0"
    assert (facts["Pods"], facts["Pods now"]) == ("2 at once, 3 completions", "2 active, 1 succeeded; 1 ready")
    assert (facts["Completed indexes"], "Gang" in facts) == ("0", False)
    assert job_sections(one, now_s=0.0)[0][0] == "Conditions"
    stream = io.StringIO()
    assert one.pods is not None
    print_pods(one.pods, Output(stream))
    assert "2 at once, 3 completions" in stream.getvalue()


def test_a_long_history_is_described_on_one_page_that_says_how_to_see_the_rest() -> None:
    one = job()
    gang = [run.model_dump() for run in job(*((rank, f"u{rank}") for rank in range(3))).attempts[0].runs]
    attempts = [{**one.attempts[0].model_dump(), "number": n, "runs": gang} for n in range(1, 4001)]
    sections = dict(job_sections(job(attempts=attempts), now_s=0.0))
    title = "Attempts (the last 20 of 4,000; all: holdfast attempts train-workers-0)"
    assert [row[0] for row in sections[title][1]] == [str(n) for n in range(3981, 4001)]
    runs = {title: len(rows) for title, (_, rows) in sections.items() if title.startswith("Runs")}
    assert list(runs)[-1] == "Runs of attempt 4000"
    assert sum(runs.values()) == 20
    assert next(iter(runs)) == "Runs of attempt 3994 (the first 2 of 3; all: holdfast get job train-workers-0 -o json)"
    assert list(dict(job_sections(job((0, "a")), now_s=0.0)))[1:] == ["Attempts", "Runs of attempt 1"]


@pytest.mark.parametrize("action", SetAction)
def test_what_a_job_set_decides_about_an_attempt_is_told_in_its_words(action: SetAction) -> None:
    decision = {"action": action.value, "code": "x", "reason": "because"}
    one = job(attempts=[{**job().attempts[0].model_dump(), "state": "Failed", "exit_code": 3, "decision": decision}])
    line = attempt_line(one.attempts[0])
    assert "no retry" not in line
    assert line.endswith(": because")
    assert ("is restarted" in line) == ("Restart" in action)
    assert ("not counted" in line) == ("Ignore" in action)


@pytest.mark.parametrize(
    ("states", "code", "says"),
    [
        (["Running", "Restarting", "Completed"], 0, "train: Completed"),
        (["Running", "Failed"], 1, "train: Failed"),
        (["Running", "Running", "gone"], 1, "train: is gone"),
        (["Running", "Suspended", "Suspended", "Completed"], 0, "to resume it: holdfast resume jobset train"),
        (["Unmanaged", "Unmanaged", "Completed"], 0, "train is not run by Holdfast"),
    ],
)
def test_waiting_ends_as_the_job_set_ended(states: list[str], code: int, says: str) -> None:
    found = said("wait jobset train", Server(["Running", *states]))
    assert (found.code, found.err.count("\n")) == (code, 2 if "oldfast" in says else 1)
    assert says in found.err
    assert found.notes == ["drives"]


def test_waiting_gives_up_when_the_time_is_over() -> None:
    found = said("wait jobset train --timeout 3s", Server(["Running"]))
    assert (found.code, found.err) == (124, "timed out: 1 of 1 job sets are not terminal yet\n")


def test_waiting_for_a_state_that_comes_is_good() -> None:
    assert said("wait jobset train --for suspended", Server(["Running", "Running", "Suspended"])).code == 0
    assert said("wait jobset other").code == 3


def test_a_deletion_is_waited_for_unless_told_not_to() -> None:
    waited = said("delete jobset train", Server(["Running", "Deleting", "Deleting", "gone"]))
    assert (waited.code, waited.out, waited.notes) == (0, "jobset train deleted\n", ["drives"])
    assert waited.server.asked == [("delete", "train")]
    asked = said("delete jobset train --no-wait")
    assert (asked.code, asked.out, asked.notes) == (
        0,
        "jobset train deletion requested\n",
        ["asks", "job sets are deleted"],
    )
    late = said("delete jobset train --timeout 2s", Server(["Deleting"]))
    assert (late.code, late.err) == (124, "timed out: train is not gone yet\n")
    assert said("delete jobset other").code == 3


@pytest.mark.parametrize("verb", ["suspend", "resume"])
def test_a_set_is_suspended_and_resumed(verb: str) -> None:
    found = said(f"{verb} jobset train --reason budget")
    assert (found.code, found.out) == (0, f"jobset train {verb} requested\n")
    assert found.server.asked == [(verb, "train", "budget")]
    refused = said(f"{verb} jobset train", Server(refusal=NotFound("there is none")))
    assert (refused.code, refused.err) == (3, "error: jobset train: there is none\n")


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("restart jobset train", [("restart", "train", "")]),
        ("restart replicatedjob train workers", [("restart", "train", "workers", None, "")]),
        ("restart rj train/a train/b", [("restart", "train", "a", None, ""), ("restart", "train", "b", None, "")]),
        ("restart job train-workers-0 --reason stuck", [("restart", "01s", "workers", 0, "stuck")]),
    ],
)
def test_what_is_restarted_by_hand(line: str, asked: list[tuple[Any, ...]]) -> None:
    found = said(line, Server(jobs=[job()]))
    assert (found.code, found.server.asked) == (0, asked)


def test_a_job_of_no_set_is_not_restarted() -> None:
    found = said("restart job train-workers-0", Server(jobs=[job(job_set=None)]))
    assert (found.code, found.server.asked) == (4, [])
    assert "belongs to no job set" in found.err


@pytest.mark.parametrize("path", KEP, ids=lambda path: path.stem)
@pytest.mark.parametrize("verb", ["apply", "create", "submit"])
def test_the_documents_own_manifests_need_lenience_and_get_warnings_with_lines(path: Path, verb: str) -> None:
    strict = said(f"{verb} -f {path}")
    assert (strict.code, strict.server.asked) == (2, [])
    assert "hint: --lenient turns these into warnings" in strict.err
    lenient = said(f"{verb} -f {path} --lenient")
    assert lenient.code == 0
    assert all(line.startswith(f"warning: {path}: ") for line in lenient.err.splitlines())
    assert " (line " in lenient.err
    assert [asked[-1] for asked in lenient.server.asked] == [True]


@pytest.mark.parametrize(
    ("verb", "asked", "result"),
    [("create", "create", "created"), ("apply", "put", "unchanged"), ("update", "update", "unchanged")],
)
def test_a_job_set_is_sent_and_what_became_of_it_is_said(verb: str, asked: str, result: str) -> None:
    warning = {"path": "spec.replicatedJobs[0].template", "message": "image x is ignored"}
    found = said(f"{verb} -f -", Server(warnings=[warning]), JOBSET)
    assert (found.code, found.out) == (0, f"jobset train {result}\n")
    assert found.err == "warning: standard input: spec.replicatedJobs[0].template (line 7): image x is ignored\n"
    assert found.server.asked == [(asked, "train", False)]


def test_an_error_of_the_server_is_traced_to_its_line() -> None:
    refusal = InvalidManifest("no", problems=[Problem("spec.replicatedJobs[0].name", "is bad", line=99)])
    found = said("apply -f -", Server(refusal=refusal), JOBSET)
    assert found.code == 2
    assert "standard input: spec.replicatedJobs[0].name (line 7): is bad" in found.err


def test_a_strict_servers_refusal_offers_lenience_where_it_would_do() -> None:
    text = next(path for path in KEP if path.stem == "different-policies").read_text().replace("image: bash:latest", "")
    refusal = InvalidManifest("no", problems=[Problem("spec.failurePolicy.rules[1].targetReplicatedJobs[0]", "is bad")])
    found = said("create -f -", Server(refusal=refusal), text)
    assert "(line 16)" in found.err
    assert "--lenient turns these into warnings" in found.err


def test_lenience_is_offered_for_what_only_running_it_needs() -> None:
    pod = "spec: {restartPolicy: Never, containers: [{name: main, image: perl}]}"
    text = f"{JOBSET}    template: {{spec: {{template: {{{pod}}}}}}}\n"
    refusal = InvalidManifest("no", problems=[Problem("spec.replicatedJobs[0]", "is bad")])
    assert "--lenient turns these into warnings" in said("create -f -", Server(refusal=refusal), text).err


def test_lenience_is_not_offered_where_it_would_not_help() -> None:
    refusal = InvalidManifest("no", problems=[Problem("spec.replicatedJobs", "Invalid value: field is immutable")])
    found = said("create -f -", Server(refusal=refusal), JOBSET)
    assert found.code == 2
    assert "--lenient" not in found.err


def test_jobs_of_kubernetes_are_applied_before_the_others_and_after_policies_and_sets() -> None:
    text = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: one}}\n---\n{JOBSET}---\nname: two\ncommand: [x]\n"
    found = said("apply -f -", None, text)
    assert found.server.asked == [("put", "train", False), ("put job", "one", False), ("jobs", 1, False)]
    assert found.out == "jobset train unchanged\njob j0 one submitted\njob j0 j submitted\n"
    assert found.notes == ["asks", "jobs start"]


def test_what_is_refused_keeps_nothing_else_from_being_applied() -> None:
    text = f"{JOBSET}---\n{JOBSET.replace('train', 'other')}---\nname: two\ncommand: [x]\n"
    found = said("apply -f -", Server(refusal=AlreadyExists("not that one")), text)
    assert found.server.asked == [("put", "train", False), ("put", "other", False), ("jobs", 1, False)]
    assert (found.code, found.out) == (4, "job j0 j submitted\n")
    assert found.err == "error: not that one\n" * 2


def test_nothing_is_submitted_before_everything_was_checked() -> None:
    text = f"{JOBSET}---\n{JOBSET.replace('train', 'other')}---\nname: two\ncommand: [x]\n"
    found = said("submit -f -", None, text)
    checks = [("check", 3, "create False")]
    sent = [("create", "train", False), ("create", "other", False), ("jobs", 1, False)]
    assert found.server.asked == [*checks, *sent]
    assert found.out == "01s train\n01s train\nj0 j\n"
    refusal = InvalidManifest("no", problems=[Problem("items[1].spec", "is bad"), Problem("items[2].name", "is bad")])
    refused = said("submit -f -", Server(refusal=refusal), text)
    assert (refused.code, refused.server.asked) == (2, checks)
    assert refused.err.count("is bad") == 2


def test_a_set_that_exists_is_not_submitted_again() -> None:
    found = said("submit -f -", Server(refusal=AlreadyExists("there is a job set train")), JOBSET)
    assert (found.code, found.err) == (4, "error: there is a job set train\n")


def test_submitting_and_waiting_ends_as_the_set_ended() -> None:
    server = Server(["Running", "Running", "Failed"])
    found = said("submit -f - --wait", server, JOBSET)
    assert (found.code, found.out, found.err) == (1, "01s train\n", "train: Failed\n")


def test_pods_that_come_later_and_those_that_take_anothers_place_are_followed_too() -> None:
    server = Server(jobs=[job((0, "a")), job((0, "b"), (2, "c"))], children={"01j/1/0": "old\n", "01j/1/2": "two\n"})
    cli = surroundings(server)
    follower = Follower(cast("Client", server), "01j", cli)
    follower.look()
    server.children["01j/1/0"] += "new\n"
    server.began["01j/1/0"] = [4]
    follower.look()
    assert cast("Any", cli.stdout).getvalue() == "[0] old\n[0] new\n[2] two\n"
    assert cast("Any", cli.stderr).getvalue() == "rank 0: run 2 begins\n"


REPLACED = {"01j/1/0": "half of onetwo\nthree\n", "01j/1/2": "only\n"}
BEGAN = {"01j/1/0": [11, 15]}


@pytest.mark.parametrize(
    ("line", "out", "err"),
    [
        ("logs train-workers-0", "[0] three\n[2] only\n", "runs of pods that were replaced are left out; --all "),
        ("logs train-workers-0 --rank 0", "three\n", "runs of pods that were replaced are left out; --all "),
        ("logs train-workers-0 --rank 2", "only\n", ""),
        (
            "logs train-workers-0 --all",
            "[0] half of one\n[0] two\n[0] three\n[2] only\n",
            "rank 0: run 2 begins\nrank 0: run 3 begins\n",
        ),
        ("logs train-workers-0 --all --rank 0", "half of one\ntwo\nthree\n", "run 2 begins\nrun 3 begins\n"),
    ],
)
def test_the_newest_pod_of_each_rank_is_printed_and_with_all_those_before_it_marked(
    line: str, out: str, err: str
) -> None:
    found = said(line, Server(jobs=[job((0, "a"), (2, "c"))], children=dict(REPLACED), began=dict(BEGAN)))
    assert (found.code, found.out) == (0, out)
    assert found.err.startswith(err) if err else found.err == ""


def test_following_begins_with_the_newest_pods_and_marks_those_that_come() -> None:
    server = Server(jobs=[job((0, "a")), job((0, "b"))], children=dict(REPLACED), began={"01j/1/0": [11, 15]})
    cli = surroundings(server)
    follower = Follower(cast("Client", server), "01j", cli, LogSelection(newest=True))
    follower.look()
    server.began["01j/1/0"].append(len(server.children["01j/1/0"]))
    server.children["01j/1/0"] += "four\n"
    follower.look()
    assert cast("Any", cli.stdout).getvalue() == "[0] three\n[0] four\n"
    assert cast("Any", cli.stderr).getvalue().splitlines()[1:] == ["rank 0: run 4 begins"]


def test_the_log_of_one_pod_is_asked_for_by_its_index() -> None:
    server = Server(jobs=[job((0, "a"), (2, "c"))], children={"01j/1/0": "zero\n", "01j/1/2": "two\n"})
    assert said("logs train-workers-0 --rank 2", server).out == "two\n"
    assert said("logs train-workers-0", server).out == "[0] zero\n[2] two\n"
    missing = said("logs train-workers-0 --rank 3", server)
    assert (missing.code, "its ranks are 0 to 2" in missing.err) == (3, True)
