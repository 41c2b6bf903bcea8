"""How what Fluster's door makes of a launch, and tells of a job, can be broken."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

MUTATIONS = (
    Mutation(
        "losses of a worker are charged to the job's own budget",
        "dialects/fluster/retry.py",
        "conditions=PLACE_LOST, retry_limit=preemption",
        "conditions=PLACE_LOST, retry_limit=failure",
        ("unit/test_fluster_retry.py",),
    ),
    Mutation(
        "an end that nobody knows is the job's own failure",
        "dialects/fluster/retry.py",
        "        FailureCondition.EXECUTOR_LOST,\n        FailureCondition.END_UNKNOWN,\n",
        "",
        ("unit/test_fluster_retry.py",),
    ),
    Mutation(
        "allowed exit codes beat denied ones",
        "dialects/fluster/retry.py",
        "            *never,\n",
        "",
        ("unit/test_fluster_retry.py",),
    ),
    Mutation(
        "0 retries are the default number",
        "dialects/fluster/retry.py",
        "return default if limit is None else limit",
        "return limit or default",
        ("unit/test_fluster_retry.py",),
    ),
    Mutation(
        "a job that leaves the built-in policy out is taken for one that has it",
        "controller/policy_catalog.py",
        "built_in = spec.pod is None if spec.builtin is None else spec.builtin",
        "built_in = spec.pod is None",
        ("unit/test_fluster_retry.py",),
    ),
    Mutation(
        "what waits to be run again has its last attempt as the current one",
        "dialects/fluster/status.py",
        "    if job.state in JOB_WAITING:\n        return True\n    return job.state is",
        "    return job.state is",
        ("unit/test_fluster_status.py",),
    ),
    Mutation(
        "512m is a half of a thousandth",
        "dialects/fluster/resources.py",
        "(1 << 10 * _POWERS[match[2].lower()])",
        "(1000 ** _POWERS[match[2].lower()])",
        ("unit/test_fluster_resources.py",),
    ),
    Mutation(
        "an executor ends the runs of others",
        "controller/observations.py",
        "if found is None or found[1].executor != executor:",
        "if found is None:",
        ("unit/test_controller.py::test_a_report_of_a_run_that_another_executor_has_changes_nothing",),
    ),
    Mutation(
        "what a call returned is read in the server",
        "api/fluster/jobs.py",
        "            told.serialized_result = result\n",
        "            told.serialized_result = __import__('pickle').loads(result) and result or result\n",
        ("e2e/test_fluster_calls.py::test_a_result_is_read_by_who_asked_for_it_alone",),
    ),
    Mutation(
        "each process of a call that forks leaves a result",
        "sdk/calls/entrypoint.py",
        "if os.getpid() == begun_as:  # else",
        "if True:  # else",
        ("integration/test_fluster_entrypoint.py",),
    ),
    Mutation(
        "a result may be of any size",
        "sdk/calls/entrypoint.py",
        "if len(body) > LARGEST_RESULT:",
        "if len(body) > LARGEST_RESULT + 1:",
        ("integration/test_fluster_entrypoint.py",),
    ),
    Mutation(
        "lines of one moment are told again with those that follow",
        "fluster/logs.py",
        "if again and entry.timestamp_ms == self._last_ms:",
        "if again < 0:",
        ("unit/test_fluster_logs.py",),
    ),
    Mutation(
        "a workspace is sent with what git ignores where git fails",
        "fluster/launching.py",
        "_NO_REPOSITORY not in listed.stderr",
        "b'' not in listed.stderr",
        ("e2e/test_fluster_client.py::test_a_workspace_whose_git_does_not_answer_is_not_sent",),
    ),
    Mutation(
        "packages may take as long to install as they like",
        "dialects/fluster/world.py",
        ", *wanted), setup.limit_s) if wanted",
        ", *wanted)) if wanted",
        (
            "e2e/test_fluster_calls.py::test_an_index_that_does_not_answer_costs_a_job_no_more_than_the_time_that_is_set",
        ),
    ),
    Mutation(
        "what cannot be installed is tried as often as the worker may be lost",
        "dialects/fluster/retry.py",
        "retry_limit=LAUNCHES",
        "retry_limit=preemption",
        ("e2e/test_fluster_calls.py::test_what_cannot_be_installed_is_not_the_job_s_fault_and_tried_twice_more",),
    ),
    Mutation(
        "a preparation that fails keeps why to itself",
        "engines/process/shim/supervisor/preparing.py",
        "{argv[0]}{': ' * bool(said)}{said}",
        "{argv[0]}",
        ("integration/test_process_preparing.py",),
    ),
)
