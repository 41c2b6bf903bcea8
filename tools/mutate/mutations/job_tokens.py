"""Tokens of jobs: how long they open anything, for what, and who can make one."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_LIMIT, _RUNS = "unit/test_job_tokens.py", "integration/test_tokens_of_jobs.py"
_BESIDE_TLS = "e2e/test_jobs_beside_tls.py::test_nobody_else_comes_in_by_the_port_of_jobs"
MUTATIONS = (
    Mutation(
        "the token of a job outlives its run",
        "service/access/job_tokens.py",
        "if run.status in RUN_TERMINAL or run.attempt",
        "if run.attempt",
        (_RUNS,),
    ),
    Mutation(
        "the token of an earlier attempt opens what the later one's does",
        "service/access/job_tokens.py",
        "run.attempt != job.attempt or job.terminal",
        "job.terminal",
        (_RUNS,),
    ),
    Mutation(
        "whatever names a run with a token is that token",
        "service/access/job_tokens.py",
        "if not hmac.compare_digest(_digest(text), known) or run is None or not jobs:",
        "if run is None or not jobs:",
        (_RUNS,),
    ),
    Mutation(
        "an account that was made again is the owner of a job that still runs",
        "service/access/job_tokens.py",
        "if None not in {found.uid, job.submitter_uid} and found.uid != job.submitter_uid:",
        "if False:",
        (_RUNS,),
    ),
    Mutation(
        "a job ends itself by its token where it is in the group of those below it",
        "domain/rights.py",
        "if steers_itself and right not in OF_ITSELF:",
        "if False:",
        (_LIMIT,),
    ),
    Mutation(
        "the token of a job is for any whose name begins as its own",
        "domain/access/group.py",
        "return group == self.name or (self.below and group.startswith(self.begins))",
        "return group == self.name or (self.below and group.startswith(self.name))",
        (_LIMIT,),
    ),
    Mutation(
        "a job whose name ends with a slash has those beside it below it",
        "domain/access/group.py",
        "cls(text.removesuffix(BELOW), below=True)",
        "cls(text.rstrip(BELOW), below=True)",
        (_LIMIT,),
    ),
    Mutation(
        "a token that is for less hands on a job's token that is for more",
        "service/admission/limits.py",
        "if refused is None and below and not hands_on(principal, below):",
        "if False:",
        (_RUNS,),
    ),
    Mutation(
        "a token for one queue hands on a job's token for all",
        "domain/access/places.py",
        "return anywhere and (grouped is None",
        "return (grouped is None",
        (_LIMIT,),
    ),
    Mutation(
        "a job that is being cancelled goes on to submit",
        "service/access/job_tokens.py",
        "submits=not job.cancel_requested)",
        "submits=True)",
        (_RUNS,),
    ),
    Mutation(
        "a list has no job that a token is for by its id alone",
        "storage/sql/rows/conditions.py",
        "        return key == storable(place.job)",
        "        return false()",
        (_RUNS,),
    ),
    Mutation(
        "whoever shows any token comes in by the port of jobs, which speaks in clear",
        "api/http/serving/gates.py",
        "and not _token_of_job(scope):",
        "and False:",
        (_BESIDE_TLS,),
    ),
    Mutation(
        "a job that shows its token by a socket is its account",
        "api/http/serving/gates.py",
        "if shown else self._who(uid)",
        "if False else self._who(uid)",
        ("unit/test_principals.py",),
    ),
    Mutation(
        "the next server has another port for programs of jobs",
        "app/entrance/of_jobs.py",
        "kept is not None and not _answers(kept)",
        "False",
        ("unit/test_port_of_jobs.py",),
    ),
    Mutation(
        "two servers share the port for programs of jobs",
        "app/entrance/of_jobs.py",
        " and not _answers(kept)",
        "",
        ("integration/test_held_port.py",),
    ),
    Mutation(
        "nobody holds the port for programs of jobs while the server is away",
        "engines/process/shim/loop.py",
        'self._held.hold(settings.get("held_port", 0))',
        "self._held.hold(0)",
        ("integration/test_held_port.py",),
    ),
)
