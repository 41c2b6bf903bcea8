"""What a node is short of is charged to nobody, and keeps work away from it."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_SHORT = ("unit/test_shortages.py",)

MUTATIONS = (
    Mutation(
        "requests begin however little memory is left",
        "api/http/serving/memory.py",
        "_ROOM = 16 * 1024 * 1024",
        "_ROOM = 16 * 1024",
        ("e2e/test_shortages.py::test_nothing_begins_where_little_memory_is_left",),
    ),
    Mutation(
        "a long answer goes out in one piece",
        "api/http/serving/memory.py",
        "while len(body) - sent > _PIECE:",
        "while len(body) - sent > _ROOM:",
        ("unit/test_long_answers.py",),
    ),
    Mutation(
        "a node that is short gets all the work there is",
        "controller/placement.py",
        "return place.short is None or place.short.admits_one(now)",
        "return bool(place) or now > 0",
        _SHORT,
    ),
    Mutation(
        "a node that is short is tried with everything at once",
        "domain/placement/scheduling.py",
        "for place in self.tried.intersection(chosen):",
        "for place in self.tried.difference(self.tried):",
        _SHORT,
    ),
    Mutation(
        "policies are asked about a shortage",
        "domain/workloads/retry.py",
        "if short_of is not None:",
        "if short_of is not None and not history.job_id:",
        _SHORT,
    ),
    Mutation(
        "a gang is judged by those that ran while another could not be started",
        "domain/classify.py",
        "blamed.append((outcome.started or met(outcome) is None, ",
        "blamed.append((True, ",
        _SHORT,
    ),
    Mutation(
        "a pod that was refused is a failed pod of its job",
        "domain/workloads/kubejob/programs.py",
        "(met(outcome) or (restarts and goes_on))",
        "restarts and goes_on",
        _SHORT,
    ),
    Mutation(
        "a node seems well whenever it refuses nothing for a moment",
        "domain/shortage.py",
        "return now - self.refused_at >= OVER_AFTER_S",
        "return now - self.refused_at >= OVER_AFTER_S / 10",
        _SHORT,
    ),
    Mutation(
        "a job that is refused again and again keeps its node from all others",
        "domain/shortage.py",
        "if late <= 0:",
        "if late <= 1000:",
        _SHORT,
    ),
    Mutation(
        "refusals count although a program was started in between",
        "controller/nodes/shortages.py",
        "elif run.started_at is not None:",
        "elif run.started_at is None:",
        _SHORT,
    ),
    Mutation(
        "a run's own limit is taken for a shortage of its node",
        "engines/process/shim/supervisor/execution.py",
        "if reason == OUT_OF_MEMORY and ",
        "if not reason and ",
        ("unit/test_shim_runs.py",),
    ),
    Mutation(
        "a shortage is forgotten with the controller",
        "controller/nodes/shortages.py",
        "if node.short is not None:",
        "if node.short is not None and now < 0:",
        _SHORT,
    ),
)
