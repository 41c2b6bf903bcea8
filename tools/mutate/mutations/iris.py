"""How what Iris' door makes of names, launches and kicks can be broken."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_NAMES, _STORED = "e2e/test_iris_names.py", "contract/test_store_names.py"
MUTATIONS = (
    Mutation(
        "a list is of what is below a whole part of a name",
        "api/iris/listing.py",
        "named.beginning(asked.caller, query.job_id_prefix)",
        'named.beginning(asked.caller, query.job_id_prefix.rpartition("/")[0])',
        (f"{_NAMES}::test_a_list_is_of_names_that_begin_with_a_text_wherever_that_ends",),
    ),
    Mutation(
        "a range of names ends before what follows a surrogate",
        "storage/sql/rows/conditions.py",
        "chr(_AFTER if following == _SURROGATES else following)",
        "chr(following - 1)",
        (f"{_STORED}::test_names_are_listed_by_how_they_begin_wherever_that_ends",),
    ),
    Mutation(
        "names of others are listed",
        "storage/sql/query.py",
        "            query = query.where(seen_by(seen))\n        rows = self._rows(query.order_by(jobs.c.seq))",
        "            pass\n        rows = self._rows(query.order_by(jobs.c.seq))",
        (f"{_STORED}::test_of_the_names_of_others_none_is_listed",),
    ),
    Mutation(
        "what is below a job keeps its name when that is replaced",
        "storage/sql/admission.py",
        "            connection.execute(delete(table).where(below))\n",
        "",
        (f"{_STORED}::test_a_name_is_given_up_to_the_job_that_replaces_its_own_with_those_of_all_below",),
    ),
    Mutation(
        "whoever has a name by now gives it up",
        "storage/sql/admission.py",
        "and_(table.c.name == one.name, table.c.job_id == one.replaces)",
        "table.c.name == one.name",
        (f"{_STORED}::test_a_name_is_given_up_to_the_job_that_replaces_its_own_with_those_of_all_below",),
    ),
    Mutation(
        "a job that runs is replaced by whoever asks",
        "api/iris/launching.py",
        "if not finished and launch.existing != RECREATE:",
        "if False:",
        (f"{_NAMES}::test_a_name_is_given_to_another_as_the_policy_of_its_launch_says",),
    ),
    Mutation(
        "a job that has ended is replaced though its launch forbids it",
        "api/iris/launching.py",
        "if launch.existing == ERROR:",
        "if launch.existing == ERROR and not finished:",
        (f"{_NAMES}::test_a_name_is_given_to_another_as_the_policy_of_its_launch_says",),
    ),
    Mutation(
        "what replaces a job does not wait for its end",
        "service/manifests/iris.py",
        "        spec = evolve(spec, after=(ended,))\n",
        "",
        (f"{_NAMES}::test_a_name_is_given_to_another_as_the_policy_of_its_launch_says",),
    ),
    Mutation(
        "a kick of an attempt that is over is one of the next",
        "api/iris/tasks.py",
        "if attempt not in {None, current}:",
        "if attempt is not None and attempt > current:",
        (f"{_NAMES}::test_a_kick_is_of_the_attempt_that_it_names_and_of_no_later_one",),
    ),
    Mutation(
        "what is no name is a fault of ours",
        "api/iris/family.py",
        "        raise InvalidManifest(msg, problems=problems)",
        "        raise RuntimeError(msg, problems)",
        (f"{_NAMES}::test_what_is_no_name_is_refused_as_what_only_its_sender_can_mend",),
    ),
    Mutation(
        "a job that its user declares done was killed",
        "dialects/iris/status.py",
        "return IrisState.SUCCEEDED if job.reason == COMPLETED else IrisState.KILLED",
        "return IrisState.KILLED",
        (f"{_NAMES}::test_a_job_that_its_user_declares_done_has_succeeded_and_ends_what_is_below",),
    ),
    Mutation(
        "the name of somebody else is given away",
        "api/iris/launching.py",
        "    if there is None:\n        raise Rejected(",
        "    if there is None:\n        return True\n        raise Rejected(",
        (f"{_NAMES}::test_a_name_of_somebody_else_is_not_given_away_and_says_nothing_of_its_job",),
    ),
    Mutation(
        "tasks whose runs were not read never run",
        "dialects/iris/status.py",
        "if (last is not None and last.started_at is not None) or (run",
        "if (run",
        ("unit/test_iris_status.py",),
    ),
)
