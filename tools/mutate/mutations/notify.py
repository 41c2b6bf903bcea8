"""How telling people can be broken: whom it reaches, how often, and where it must not."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_MEDIA, _COURIER = "integration/notify/test_media.py", "unit/test_courier.py"

MUTATIONS = (
    Mutation(
        "addresses of the server's own network may be told",
        "notify/guard.py",
        "        return meant.is_global and not",
        "        return not",
        (f"{_MEDIA}::test_addresses_of_the_servers_own_network_are_refused_unless_they_are_allowed",),
    ),
    Mutation(
        "a server that answers byte by byte is waited for",
        "notify/guard.py",
        "    watch.start()\n",
        "",
        (f"{_MEDIA}::test_a_server_that_never_answers_or_never_ends_is_waited_for_no_longer_than_allowed",),
    ),
    Mutation(
        "a name server that never answers holds a delivery",
        "resolver.py",
        "    thread.join(limit_s)\n",
        "    thread.join()\n",
        (f"{_MEDIA}::test_a_name_server_that_never_answers_is_waited_for_no_longer_than_allowed",),
    ),
    Mutation(
        "a redirect is tried again",
        "notify/webhook.py",
        "        raise Undelivered(message, final=True)\n    told",
        "        raise Undelivered(message)\n    told",
        (f"{_MEDIA}::test_what_a_server_answers_is_said_and_no_redirect_is_followed",),
    ),
    Mutation(
        "any program may be run",
        "notify/sender.py",
        "notifier.command[0] not in self._permissions.programs",
        "not notifier.command",
        (f"{_MEDIA}::test_what_cannot_be_delivered_is_said_without_the_secret",),
    ),
    Mutation(
        "one notifier may take all there is to tell with",
        "notify/courier.py",
        "if count >= AT_ONCE_EACH}",
        "if count >= AT_ONCE}",
        (f"{_COURIER}::test_one_that_never_answers_leaves_room_for_the_others",),
    ),
    Mutation(
        "a recovery is told as a success",
        "domain/notifications/notification.py",
        "after.attempt > 1",
        "after.attempt > 99",
        (f"{_COURIER}::test_a_job_is_told_of_once_however_many_attempts_it_took",),
    ),
    Mutation(
        "nobody is told that an array is held",
        "controller/workloads/arrays.py",
        "self._state.put_workload(row, self.told_of(row, row.updated_at) if begins else ())",
        "self._state.put_workload(row)",
        (f"{_COURIER}::test_that_an_array_is_held_is_told_each_time_and_once",),
    ),
    Mutation(
        "an array that is held already is told of as held again",
        "controller/workloads/arrays.py",
        "not (work.row.state.held or row.state.stopping)",
        "not row.state.stopping",
        (f"{_COURIER}::test_that_an_array_is_held_is_told_each_time_and_once",),
    ),
    Mutation(
        "an older result of a try is written over a replay",
        "storage/sql/notifications.py",
        "_write(connection, one, waits, _table.c.since == one.since)",
        "_write(connection, one, waits)",
        ("contract/test_store_notifications.py",),
    ),
    Mutation(
        "an older result of a try is written over a newer one",
        "storage/sql/notifications.py",
        "_write(connection, one, waits, _table.c.since == one.since)",
        "_write(connection, one, _table.c.since == one.since)",
        ("contract/test_store_notifications.py",),
    ),
)
