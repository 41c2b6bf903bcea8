"""Where processes of one machine find each other, and whom they believe."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

MUTATIONS = (
    Mutation(
        "what others can write is believed",
        "app/data/trust.py",
        "_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH",
        "_OTHERS_WRITE = stat.S_IWOTH & stat.S_IWGRP",
        ("unit/test_trust.py",),
    ),
)
