"""How the stores can be broken: what is durable, and who may write."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

MUTATIONS = (
    Mutation(
        "a job that is about to be retried is deleted",
        "storage/sql/retention.py",
        "if job_id not in needed}",
        "if job_id not in needed or digest}",
        ("contract/test_store_races.py",),
    ),
    Mutation(
        "what a job left is deleted before the job",
        "service/logs.py",
        "if finished:",
        "if finished and not ended:",
        ("unit/test_service_logs.py",),
    ),
    Mutation(
        "a job is retried twice",
        "storage/sql/admission.py",
        "with_for_update(key_share=True)",
        "limit(1)",
        ("contract/test_store_races.py",),
    ),
    Mutation(
        "a queue is deleted while a job is submitted to it",
        "storage/sql/admission.py",
        "    if gone:",
        "    if gone and not named:",
        ("contract/test_store_races.py",),
    ),
    Mutation(
        "a task that another array runs again is run again",
        "storage/sql/admission.py",
        "if batches.reruns.run(connection, rows) != len(rows):",
        "if not batches.reruns.run(connection, rows):",
        ("contract/test_store_races.py",),
    ),
    Mutation(
        "a task is run again from an array that no longer has it",
        "storage/sql/admission.py",
        "(table.c.number > rerun.number) | former",
        "table.c.number > rerun.number",
        ("contract/test_store_races.py",),
    ),
    Mutation(
        "secrets that jobs name are swept",
        "service/admission/secrets.py",
        "found.difference_update(_QUOTED.findall(text))",
        "found.intersection_update(_QUOTED.findall(text))",
        ("unit/test_secrets.py",),
    ),
    Mutation(
        "others may read what is secret",
        "storage/secrets.py",
        "_PRIVATE_FOLDER, _PRIVATE = 0o700, 0o600",
        "_PRIVATE_FOLDER, _PRIVATE = 0o755, 0o644",
        ("unit/test_secrets.py",),
    ),
    Mutation(
        "SQLite does not sync",
        "storage/sql/engine.py",
        "PRAGMA synchronous=FULL",
        "PRAGMA synchronous=OFF",
        ("contract/test_store_on_disk.py",),
    ),
    Mutation(
        "a mapped file that cannot be written is touched all the same",
        "storage/sql/engine.py",
        "if self._mapped and not os.access(",
        "if not self._mapped and not os.access(",
        ("contract/test_store_on_disk.py",),
    ),
    Mutation(
        "a deposed writer may commit",
        "storage/sql/controller.py",
        "if newest != changes.epoch:",
        "if newest < changes.epoch:",
        ("contract/test_store_leadership.py",),
    ),
    Mutation(
        "a new leader has the epoch of the last",
        "storage/sql/controller.py",
        "epoch + (holder != owner)",
        "epoch + (not holder)",
        ("contract/test_store_leadership.py",),
    ),
    Mutation(
        "changes of jobs that are not there are dropped",
        "storage/sql/controller.py",
        "if batches.jobs.run(connection, jobs) != len(jobs):",
        "if batches.jobs.run(connection, jobs) > len(jobs):",
        ("contract/test_store_contract.py",),
    ),
    Mutation(
        "handled requests stay",
        "storage/sql/controller.py",
        "(batches.handled, [*zip(changes.handled)])",
        "(batches.handled, [])",
        ("contract/test_store_contract.py",),
    ),
    Mutation(
        "a key may be used for something else",
        "storage/sql/submission.py",
        "if known.fingerprint != submission.fingerprint:",
        "if known.fingerprint is None:",
        ("contract/test_store_contract.py",),
    ),
    Mutation(
        "events of a commit are not written",
        "storage/sql/controller.py",
        "            append_events(connection, batches, changes.events.values())",
        "            append_events(connection, batches, ())",
        ("contract/test_store_events.py",),
    ),
    Mutation(
        "the last runs of pods are not read back",
        "storage/sql/controller.py",
        ("        runs += self._last_runs(workloads.values(), {run.uid for run in runs})\n"),
        "",
        ("contract/test_store_jobsets.py",),
    ),
    Mutation(
        "what last happened to jobs that are held is not loaded",
        "storage/sql/controller.py",
        "for state in (JobState.QUEUED, JobState.HELD))",
        "for state in (JobState.QUEUED,))",
        ("contract/test_store_contract.py",),
    ),
)
