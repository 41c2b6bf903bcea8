"""How waiting for other work can be broken."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_RULES = "domain/workloads/dependencies.py"
_INDEX = "controller/dependencies.py"
_TESTS = ("unit/test_dependencies.py",)

_TOLD = (
    "contract/test_store_races.py::"
    "test_what_is_waited_for_stays_until_what_is_stored_of_who_waits_says_that_it_has_heard_of_the_end"
)
MUTATIONS = (
    Mutation(
        "a cancelled job counts as failed",
        _RULES,
        "    Condition.FAILED: frozenset({FAILED}),",
        "    Condition.FAILED: frozenset({FAILED, CANCELLED}),",
        _TESTS,
    ),
    Mutation(
        "what can never hold is waited for",
        _RULES,
        "        if after[place].on_unmet is OnUnmet.CANCEL:",
        "        if after[place].on_unmet is None:",
        _TESTS,
    ),
    Mutation(
        "what has happened is not kept",
        "storage/sql/codec.py",
        "None if not job.met else dump_json(job.met)",
        "None",
        ("contract/test_store_workloads.py",),
    ),
    Mutation(
        "those beyond the first thousand are not told",
        _INDEX,
        "            self._queue.defer(kind, dependent)",
        "            pass",
        _TESTS,
    ),
    Mutation(
        "a job that no longer waits is remembered",
        _INDEX,
        "                entry.dependents.pop(key, None)",
        "                entry.dependents.get(key)",
        _TESTS,
    ),
    Mutation(
        "the total deadline counts while a job waits",
        "domain/workloads/gang/conclude.py",
        "    return job.submitted_at if job.ready_at is None else job.ready_at",
        "    return job.submitted_at",
        _TESTS,
    ),
    Mutation(
        "what is forgotten at once was deleted to those that wait for it",
        _INDEX,
        "        if what is None and entry.standing is not None and entry.standing.outcome:",
        "        if what is None and entry.standing is None:",
        ("unit/test_dependencies_on_sets.py",),
    ),
    Mutation(
        "a task that has just been made is not there for those who wait for it",
        "controller/state.py",
        "        self.changes.new_jobs[job.id] = job\n        self._heed(job.id, job)\n",
        "        self.changes.new_jobs[job.id] = job\n",
        _TESTS,
    ),
    Mutation(
        "a job set does not wait for other work",
        "controller/workloads/jobsets.py",
        "        if not looked.state.terminal and len(looked.state.met) < len(after):",
        "        if looked.state.terminal and len(looked.state.met) < len(after):",
        ("unit/test_dependencies_of_sets.py",),
    ),
    Mutation(
        "a job set that never started has failed to those that wait for it",
        "domain/workloads/jobset/state.py",
        "        return JobState.CANCELLED.value if never else self.ended",
        "        return self.ended",
        ("unit/test_dependencies_of_sets.py",),
    ),
    Mutation(
        "what a job set waits for is forgotten when it is changed",
        "service/jobsets/sets.py",
        "        wanted = evolve(read.spec, after=before.after)",
        "        wanted = read.spec",
        ("unit/test_dependencies_of_sets.py",),
    ),
    Mutation(
        "a job set is sent before what it waits for",
        "cli/submission/order.py",
        "if place in owners and not awaited[place] & left.keys()]",
        "if place in owners]",
        ("property/test_order_properties.py",),
    ),
    Mutation(
        "an array that is to be held is cancelled",
        "controller/workloads/arrays.py",
        "            if found.unmet is OnUnmet.HOLD:",
        "            if found.unmet is OnUnmet.RUN:",
        _TESTS,
    ),
    Mutation(
        "a Kubernetes Job does not wait for other work",
        "controller/workloads/kubejobs.py",
        "        if job.state is JobState.QUEUED:\n            self._begin(",
        "        if job.state is not JobState.HELD:\n            self._begin(",
        ("unit/test_dependencies_of_pods.py",),
    ),
    Mutation(
        "a Kubernetes Job that is resumed waits for nothing",
        "domain/workloads/gang/conclude.py",
        "return kept_waiting(job, spec.after, now) if spec.after and job.ready_at is None else queued(job, now)",
        "return queued(job, now)",
        ("unit/test_dependencies_of_pods.py",),
    ),
    Mutation(
        "what a new job set waits for is deleted before the controller has heard of the set",
        "storage/sql/retention.py",
        "owners(connection, tables.workloads.c.id.in_(some))",
        "[]",
        (_TOLD,),
    ),
    Mutation(
        "what an array waits for is deleted before it is told",
        "storage/sql/retention.py",
        "owners(connection, tables.workloads.c.spec.contains(AFTER))",
        "[]",
        (_TOLD,),
    ),
    Mutation(
        "what jobs wait for is deleted before they are told",
        "storage/sql/retention.py",
        "        found.update(still_awaited(body, met))\n",
        "        del body, met\n",
        (_TOLD, "unit/test_retention_beside_work.py"),
    ),
    Mutation(
        "what jobs wait for that came during a sweep is deleted before they are told",
        "storage/sql/retention.py",
        "_named(connection, tables.jobs.c.seq > last)",
        "set[str]()",
        (_TOLD,),
    ),
    Mutation(
        "what has happened already is waited for until all has",
        "compiled/workloads.py",
        "not one.outcome and place not in places",
        "not one.outcome",
        ("unit/test_retention_beside_work.py",),
    ),
    Mutation(
        "what a workload of a further kind needs is not kept",
        "compiled/workloads.py",
        "        return _as_stored(workload).needs(workload)",
        "        return Needs()",
        ("unit/test_kinds.py",),
    ),
    Mutation(
        "a job of a further kind is taken for one whose owner is gone",
        "service/steering/jobs.py",
        "found.get(job.of_set.set_id) or owner_of(store, job.of_set)",
        "found.get(job.of_set.set_id)",
        ("unit/test_kinds.py",),
    ),
    Mutation(
        "what is named with its kind may be of another",
        "cli/targets.py",
        '            kept = field == "jobs" and len(several) > 1',
        "            kept = False",
        ("unit/test_cli_lines.py",),
    ),
    Mutation(
        "that work of a further kind is suspended is recorded as held",
        "storage/rules.py",
        "if Act.SUSPEND in info_of(named[key]).acts else",
        "if named[key] == JOBSET else",
        ("unit/test_kinds.py",),
    ),
    Mutation(
        "only the kinds that there were can be waited for",
        "service/admission/dependencies.py",
        "if issubclass(one.record, Owner)}",
        "if kind in {'array', 'jobset'}}",
        ("unit/test_kinds.py",),
    ),
    Mutation(
        "events about what is asked of arrays are about the settings",
        "wire/render_events.py",
        "**{kind.subject: kind.plural for kind in KINDS.values()},",
        "**{kind.subject: kind.plural for kind in KINDS.values() if kind.name != 'array'},",
        ("unit/test_kinds_of_work.py",),
    ),
    Mutation(
        "a retried job waits for nothing",
        "domain/workloads/gang/conclude.py",
        "return kept_waiting(job, after, now) if waits else job",
        "return job",
        ("unit/test_dependencies_of_retries.py",),
    ),
    Mutation(
        "what a retried job waits for is deleted before the controller has acted on the retry",
        "storage/sql/retention.py",
        " | _named_again(connection)",
        "",
        ("unit/test_dependencies_of_retries.py",),
    ),
    Mutation(
        "a job is retried whatever has become of what it waits for",
        "storage/sql/admission.py",
        "        refuse_unmet(codec.Reader().job(row), after, _standings(connection, after))\n",
        "        del after\n",
        ("unit/test_dependencies_of_retries.py",),
    ),
    Mutation(
        "what has ended and is deleted before those who wait are looked at was never there",
        "controller/dependencies.py",
        "if entry.standing is None or not entry.standing.outcome:",
        "if entry is not None:",
        ("unit/test_dependency_index.py",),
    ),
)
