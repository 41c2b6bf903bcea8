"""The list, by the part of the code that is broken."""

from __future__ import annotations

from tools.mutate.mutations import controller, executor, policy, shim, storage

MUTATIONS = (
    *controller.MUTATIONS,
    *policy.MUTATIONS,
    *storage.MUTATIONS,
    *executor.MUTATIONS,
    *shim.MUTATIONS,
)
