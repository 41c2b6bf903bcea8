"""How the daemon between the process engine and its programs can be broken."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_READOPTION = "integration/test_process_readoption.py"
_FAULTS = "integration/test_process_faults.py"
_RESULTS = "integration/test_process_results.py"
_SHORT = "integration/test_process_descriptors.py"
_READ_ONLY = "integration/test_process_read_only.py"

MUTATIONS = (
    Mutation(
        "orders are not written down before they start",
        "engines/process/shim/runs.py",
        "if handed and not self._journal.flush():",
        "if handed and self._journal.pending is None:",
        ("unit/test_shim_runs.py",),
    ),
    Mutation(
        "what could not be written down starts all the same",
        "engines/process/shim/runs.py",
        "if handed and not self._journal.flush():",
        "if handed and self._journal.flush() is None:",
        ("unit/test_shim_runs.py",),
    ),
    Mutation(
        "what is not written yet is dropped on close",
        "engines/process/shim/journal.py",
        ('        """Write what is left and close."""\n        self.flush()\n'),
        ('        """Write what is left and close."""\n'),
        ("unit/test_process_engine_parts.py",),
    ),
    Mutation(
        "a line cut short swallows the next",
        "engines/process/shim/journal.py",
        '            self.pending += b"\\n"  # a line',
        "            pass  # a line",
        ("unit/test_process_engine_parts.py",),
    ),
    Mutation(
        "results are not written down",
        "engines/process/shim/runs.py",
        ("        self._journal.ended(run)\n"),
        "",
        (f"{_READOPTION}::test_a_shim_with_nothing_to_do_leaves_and_its_results_stay",),
    ),
    Mutation(
        "an order is carried out as often as it comes",
        "engines/process/shim/runs.py",
        ("            if uid not in self.runs:\n                run ="),
        ("            if uid:\n                run ="),
        ("unit/test_shim_runs.py",),
    ),
    Mutation(
        "the programs of a copied directory are touched",
        "engines/process/shim/recovery.py",
        "elif kept.place != self._surroundings.place:",
        "elif not kept.place:",
        (f"{_READOPTION}::test_a_copy_of_a_directory_leaves_the_originals_programs_alone",),
    ),
    Mutation(
        "a stop has no limit",
        "engines/process/shim/runs.py",
        ('        self._timers.add(limit, uid, "stop")\n'),
        "",
        ("unit/test_shim_runs.py",),
    ),
    Mutation(
        "a start may hang for ever",
        "engines/process/shim/runs.py",
        ('            self._timers.add(moment.monotonic() + self.launch_limit_s, run.uid, "launch")\n'),
        "",
        (f"{_FAULTS}::test_what_does_not_start_in_time_could_not_be_launched",),
    ),
    Mutation(
        "an end for which there is little room is not written",
        "engines/process/shim/record.py",
        'self._add({"outcome": {**outcome, "message": "", "log": "", "log_tail": []}, "progress": ""})',
        "raise",
        ("unit/test_process_engine_parts.py",),
    ),
    Mutation(
        "no room is taken for an end in advance",
        "engines/process/shim/record.py",
        "os.posix_fallocate(self._fd, 0, ROOM_BYTES)",
        "self._at = 0",
        ("unit/test_shim_runs.py",),
    ),
    Mutation(
        "orders are sent again until they are acknowledged, whatever became of their runs",
        "engines/process/engine.py",
        'if "orders" not in body:',
        "if body:",
        ("integration/test_process_resending.py",),
    ),
    Mutation(
        "a message without a number takes an acknowledgement back",
        "engines/process/shim/loop.py",
        'message["seq"] or channel.acknowledge',
        'message["seq"]',
        ("integration/test_process_resending.py",),
    ),
    Mutation(
        "a supervisor that dies before it takes over takes the run with it",
        "engines/process/shim/recovery.py",
        "numbers = [handle.number] if run is None or run.former is None else",
        "numbers = [handle.number] if run is None or run.tries == 0 else",
        ("integration/test_process_readoption.py",),
    ),
    Mutation(
        "a supervisor's record goes before the journal has its result",
        "engines/process/shim/runs.py",
        "        if written:\n            self._pool.settle()\n",
        "        self._pool.settle()\n",
        ("unit/test_shim_runs.py",),
    ),
    Mutation(
        "a run goes to a supervisor whose record has a result that the journal lacks",
        "engines/process/shim/recovery.py",
        "        self._runs.settle()  # whoever",
        "        # whoever",
        ("unit/test_shim_runs.py",),
    ),
    Mutation(
        "a worn supervisor is sent away before the journal has its result",
        "engines/process/shim/runs.py",
        "            self._pool.give_up(handle)\n",
        "            self._pool.dismiss(handle)\n",
        ("unit/test_shim_runs.py",),
    ),
    Mutation(
        "of two records of a run the one counts that is read first",
        "engines/process/shim/recovery.py",
        "in sorted(dead, key=_says, reverse=True):",
        "in dead:",
        ("unit/test_shim_runs.py",),
    ),
    Mutation(
        "what was taken over is a leftover to the next shim",
        "engines/process/shim/recovery.py",
        'run.warned_s, run.group = lead_s(order), order.get("group")',
        "run.warned_s = lead_s(order)",
        ("integration/test_process_groups.py",),
    ),
    Mutation(
        "the second who takes over forgets in whose control group the program is",
        "engines/process/shim/recovery.py",
        'group = kept.order.get("group", number)',
        "group = number",
        ("integration/test_process_groups.py",),
    ),
    Mutation(
        "a supervisor gets the number of a dead one whose control group is in use",
        "engines/process/shim/pool.py",
        "*(number for number, _ in files()), *groups]",
        "*(number for number, _ in files())]",
        ("integration/test_process_groups.py",),
    ),
    Mutation(
        "who cannot complain ends",
        "engines/process/shim/complaints.py",
        "    except OSError:\n        return\n",
        "    except OSError:\n        raise\n",
        (f"{_READ_ONLY}::test_ends_are_told_and_nobody_ends_while_nothing_can_be_written",),
    ),
    Mutation(
        "a record that cannot be removed ends the shim",
        "engines/process/shim/pool.py",
        "    except OSError:\n        return False\n    return True",
        "    except OSError:\n        raise\n    return True",
        (f"{_READ_ONLY}::test_a_dead_supervisors_files_that_cannot_be_removed_keep_nobody_from_working",),
    ),
    Mutation(
        "a supervisor leaves with a result that only it has",
        "engines/process/shim/supervisor/process.py",
        "or self._execution.active or self._execution.notes.lag:",
        "or self._execution.active:",
        (f"{_READ_ONLY}::test_what_ended_meanwhile_is_known_to_a_later_shim",),
    ),
    Mutation(
        "what the disk refused of a record is never written",
        "engines/process/shim/supervisor/notes.py",
        "            self.due = moment.monotonic() + AGAIN_EVERY_S\n",
        "",
        (f"{_READ_ONLY}::test_what_could_not_be_written_is_written_as_soon_as_it_can_be",),
    ),
    Mutation(
        "a dead supervisor's record is given up for one that could not be written",
        "engines/process/shim/runs.py",
        'if run.former is not None and not message.get("unsaved"):',
        "if run.former is not None:",
        (f"{_READ_ONLY}::test_a_run_that_was_taken_over_meanwhile_is_taken_over_once_more",),
    ),
    Mutation(
        "supervisors that cannot begin are made without a pause",
        "engines/process/shim/pool.py",
        "UNBORN_S = 0.5",
        "UNBORN_S = 0.0",
        (f"{_READ_ONLY}::test_programs_whose_supervisors_are_killed_meanwhile_go_on",),
    ),
    Mutation(
        "a program that nobody can take over now never is",
        "engines/process/shim/recovery.py",
        "                self._waiting.append((run, kept, number, adopted))\n",
        "                pass\n",
        (f"{_SHORT}::test_a_program_nobody_can_take_over_goes_on_until_somebody_can",),
    ),
    Mutation(
        "a client that cannot be let in is asked for without a pause",
        "engines/process/shim/loop.py",
        "            self._selector.unregister(self._listener)\n",
        "            self._selector.unregister(self._listener)\n            self._listen()\n",
        (f"{_SHORT}::test_a_client_that_cannot_be_let_in_is_let_in_later",),
    ),
    Mutation(
        "a run whose record cannot be read begins again",
        "engines/process/shim/recovery.py",
        "            self._unreadable.add(number)\n",
        "",
        (f"{_RESULTS}::test_a_run_whose_record_cannot_be_read_may_have_run_and_does_not_begin_again",),
    ),
)
