"""How what doors tell, fill in and leave room for can be broken."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

MUTATIONS = (
    Mutation(
        "an answer with lines of a log ends in the middle of a moment",
        "api/fluster/logs.py",
        "if len(answer.logs) >= most and line.at_ms != last_ms:",
        "if len(answer.logs) >= most:",
        ("e2e/test_fluster_logs.py::test_who_polls_from_the_last_lines_time_on_has_each_line_once",),
    ),
    Mutation(
        "a launch that is sent again is known for ever",
        "service/launches.py",
        " and now - there.taken_at <= self._again_s",
        "",
        ("e2e/test_fluster_replays.py::test_a_launch_is_known_again_for_as_long_as_is_set",),
    ),
    Mutation(
        "another's launch of the same bytes is one's own",
        "service/manifests/fluster.py",
        "blake2b(who + sent,",
        "blake2b(sent,",
        ("e2e/test_fluster_replays.py::test_the_same_bytes_of_somebody_else_are_another_launch",),
    ),
    Mutation(
        "parents end before their children",
        "service/operations/batches.py",
        "            found.sort(key=_depth, reverse=True)",
        "            found.sort(key=_depth)",
        ("e2e/test_fluster_jobs.py::test_terminating_a_job_ends_all_below_it_the_deepest_first",),
    ),
    Mutation(
        "what gzip makes of a message has no bound",
        "api/connect/compression.py",
        "one.decompress(rest, largest + 1 - len(found))",
        "one.decompress(rest)[:largest]",
        ("e2e/test_fluster_connect.py::test_a_message_is_read_as_it_was_compressed",),
    ),
    Mutation(
        "what zstd makes of a message has no bound",
        "api/connect/compression.py",
        "            if len(found) > largest:\n                raise too_large(largest)\n            place",
        "            place",
        ("e2e/test_fluster_connect.py::test_a_message_is_read_as_it_was_compressed",),
    ),
    Mutation(
        "a message is read of somebody whom nobody knows",
        "api/connect/serving.py",
        "        asked = Asked(self._setup.backend, await self._setup.caller(scope), self._setup.door)\n",
        "        read(method.sent, kind, await self._body(headers, receive))\n"
        "        asked = Asked(self._setup.backend, await self._setup.caller(scope), self._setup.door)\n",
        ("e2e/test_fluster_connect.py::test_who_shows_nothing_or_a_wrong_token_stays_outside_and_has_nothing_read",),
    ),
    Mutation(
        "a lost place is told as a failure alone",
        "api/armada/told.py",
        "if _is_lost(happened):",
        "if happened.ending == 'Lost':",
        ("e2e/test_armada_conditions.py::test_a_place_that_is_lost_is_told_as_an_expired_lease_and_one_failure",),
    ),
    Mutation(
        "the name of the job id cannot be written",
        "dialects/armada/templates.py",
        '_NAME if found[0].startswith("{{") else job_id',
        "job_id",
        ("unit/test_armada_templates.py",),
    ),
    Mutation(
        "a queue whose jobs all wait is active",
        "api/armada/jobs.py",
        "if state is JobState.RUNNING)",
        "if state)",
        ("e2e/test_armada_gateway.py::test_active_queues_are_those_with_a_job_that_has_its_place_as_upstream_has_it",),
    ),
    Mutation(
        "messages are sent to somebody who has left",
        "api/armada/answering.py",
        "if event is not None and not event.success:",
        "if event is not None and event.success is None:",
        ("integration/test_armada_answers.py::test_who_does_not_read_is_waited_for_and_who_leaves_is_not",),
    ),
    Mutation(
        "all queues are meant of a node where none is named",
        "api/armada/nodes.py",
        "if one.queue in sent.queues)",
        "if not sent.queues or one.queue in sent.queues)",
        ("e2e/test_armada_gateway.py::test_what_runs_on_a_node_is_preempted_and_cancelled_by_queue_and_class",),
    ),
    Mutation(
        "who lost a place is counted as failed",
        "app/armada_metrics.py",
        "FailureCondition.PREEMPTED in happened.conditions",
        "False",
        ("unit/test_telemetry.py",),
    ),
    Mutation(
        "a door for others is spoken to in clear here",
        "app/whereabouts.py",
        'secure = _is_everywhere(own or "") if is_own else _is_everywhere(address)',
        "secure = False",
        ("unit/test_door_places.py",),
    ),
    Mutation(
        "a number that no database takes is a place among events",
        "api/armada/events.py",
        "and int(text) < 1 << 63",
        "",
        ("e2e/test_armada_gateway_callers.py",),
    ),
    Mutation(
        "logs of the door take the right to watch",
        "service/operations/jobs.py",
        "self.backend.store.job(self.backend.seeing(caller).job(Right.LOGS, ref))",
        "self.get(caller, ref).job",
        ("e2e/test_armada_gateway_callers.py::test_a_token_for_logs_alone_reads_logs_and_nothing_else",),
    ),
    Mutation(
        "refusals are longer than headers",
        "api/armada/refusals.py",
        "if len(whole) <= _DETAILS_ROOM:",
        "if whole:",
        ("unit/test_armada_refusals.py",),
    ),
    Mutation(
        "two people may follow all there is",
        "service/listeners.py",
        "return (has + self.most - self.count) // 2",
        "return self.most // 2",
        ("unit/test_listeners.py",),
    ),
    Mutation(
        "names that people choose make series without end",
        "app/armada_metrics.py",
        "if labels not in self._known and len(self._known) >= MOST_SERIES:",
        "if not labels:",
        ("unit/test_telemetry.py",),
    ),
    Mutation(
        "all of the built-in policy applies whatever the settings say",
        "controller/policy_catalog.py",
        "missing, builtin=self.catalogue.settings.builtin)",
        "missing)",
        ("unit/test_controller.py",),
    ),
)
