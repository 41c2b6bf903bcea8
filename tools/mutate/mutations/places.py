"""Where processes of one machine find each other, and whom they believe."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

MUTATIONS = (
    Mutation(
        "an address of another user is believed",
        "app/data/trust.py",
        "if caller and found.st_uid not in {caller, 0}:",
        "if caller and found.st_uid < 0:",
        ("e2e/test_strangers.py",),
    ),
    Mutation(
        "what others can write is believed",
        "app/data/trust.py",
        "_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH",
        "_OTHERS_WRITE = stat.S_IWOTH & stat.S_IWGRP",
        ("unit/test_trust.py",),
    ),
)
