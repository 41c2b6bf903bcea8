"""How the daemon between the process engine and its programs can be broken."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_READOPTION = "integration/test_process_readoption.py"
_FAULTS = "integration/test_process_faults.py"
_ENGINE = "integration/test_process_engine.py"

MUTATIONS = (
    Mutation(
        "orders are not written down before they start",
        "engines/process/shim/runs.py",
        "if handed and not self._journal.flush():",
        "if handed and self._journal.pending is None:",
        (f"{_READOPTION}::test_an_order_is_written_down_before_its_program_starts",),
    ),
    Mutation(
        "what could not be written down starts all the same",
        "engines/process/shim/runs.py",
        "if handed and not self._journal.flush():",
        "if handed and self._journal.flush() is None:",
        (f"{_FAULTS}::test_nothing_starts_that_cannot_be_written_down",),
    ),
    Mutation(
        "what is not written yet is dropped on close",
        "engines/process/shim/journal.py",
        ('        """Write what is left and let go."""\n        self.flush()\n'),
        ('        """Write what is left and let go."""\n'),
        (
            f"{_FAULTS}::test_ends_on_a_full_disk_are_kept_over_the_death_of_server_and_shim",
            f"{_READOPTION}::test_a_shim_with_nothing_to_do_leaves_and_its_results_stay",
        ),
    ),
    Mutation(
        "a line cut short swallows the next",
        "engines/process/shim/journal.py",
        '            self.pending += b"\\n"  # a line',
        "            pass  # a line",
        (f"{_READOPTION}::test_a_line_cut_short_does_not_spoil_a_journal",),
    ),
    Mutation(
        "a shim leaves with results it could not write down",
        "engines/process/shim/loop.py",
        "or self._runs.busy or self._journal.pending:",
        "or self._runs.busy:",
        (f"{_FAULTS}::test_a_shim_does_not_leave_with_results_it_could_not_write_down",),
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
        ("contract/test_engine_contract.py",),
    ),
    Mutation(
        "the programs of a copied directory are touched",
        "engines/process/shim/recovery.py",
        "elif kept.place != surroundings.place:",
        "elif not kept.place:",
        (f"{_READOPTION}::test_a_copy_of_a_directory_leaves_the_originals_programs_alone",),
    ),
    Mutation(
        "a stop has no limit",
        "engines/process/shim/runs.py",
        ('        self._timers.add(limit, uid, "stop")\n'),
        "",
        (
            f"{_READOPTION}::test_a_suspended_supervisor_is_woken",
            f"{_READOPTION}::test_a_stop_reaches_a_program_whose_supervisor_was_killed",
        ),
    ),
    Mutation(
        "a start may hang for ever",
        "engines/process/shim/runs.py",
        ('            self._timers.add(moment.monotonic() + self.launch_limit_s, run.uid, "launch")\n'),
        "",
        (f"{_FAULTS}::test_what_does_not_start_in_time_could_not_be_launched",),
    ),
    Mutation(
        "an end is not noted before it can be learned no more",
        "engines/process/shim/supervisor/execution.py",
        "        self._saved(lambda: self._record.ended(program))",
        "        self.changed = True",
        (f"{_READOPTION}::test_an_end_that_comes_while_there_is_no_shim_is_not_missed",),
    ),
)
