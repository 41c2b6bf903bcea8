"""How what a person sees on a terminal can be broken: what is asked for it, and what is left of it."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

MUTATIONS = (
    Mutation(
        "a watched list is read whole after each event",
        "cli/watching/changes.py",
        "if last > seen:\n            self._read_jobs(client, seen)",
        "if last > seen:\n            self._read(client)",
        ("unit/test_cli_changes.py",),
    ),
    Mutation(
        "a job that is no longer what was asked for is told as deleted",
        "cli/watching/changes.py",
        "return [key for key, job in left.items() if job.id not in known]",
        "return list(left)",
        ("unit/test_cli_changes.py",),
    ),
    Mutation(
        "jobs that are forgotten stay in a watched list",
        "cli/watching/changes.py",
        "            self._check_ended(client)\n",
        "",
        ("unit/test_cli_changes.py",),
    ),
    Mutation(
        "the live line writes over what a program has begun to print",
        "cli/watching/live.py",
        "if not self.able or self.is_open:",
        "if not self.able:",
        ("unit/test_cli_live.py",),
    ),
    Mutation(
        "top cancels without a question",
        "cli/screen/browser.py",
        'if key.lower() == "y" and asked is not None:',
        "if asked is not None:",
        ("unit/test_cli_top.py",),
    ),
    Mutation(
        "top asks again however long the server took",
        "cli/screen/browser.py",
        "self.rest_s = max(EVERY_S, _SHARE * (self._cli.now() - began))",
        "self.rest_s = EVERY_S",
        ("unit/test_cli_top.py",),
    ),
)
