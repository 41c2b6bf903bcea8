"""The list, by the part of the code that is broken."""

from __future__ import annotations

from tools.mutate.mutations import (
    access,
    accounts,
    controller,
    dependencies,
    devices,
    doors,
    executor,
    families,
    fluster,
    interruptions,
    iris,
    jobsets,
    notify,
    places,
    policy,
    shim,
    shortages,
    storage,
    terminal,
    untried,
)

MUTATIONS = (
    *access.MUTATIONS,
    *accounts.MUTATIONS,
    *controller.MUTATIONS,
    *policy.MUTATIONS,
    *storage.MUTATIONS,
    *devices.MUTATIONS,
    *doors.MUTATIONS,
    *dependencies.MUTATIONS,
    *notify.MUTATIONS,
    *places.MUTATIONS,
    *executor.MUTATIONS,
    *families.MUTATIONS,
    *fluster.MUTATIONS,
    *shim.MUTATIONS,
    *terminal.MUTATIONS,
    *interruptions.MUTATIONS,
    *iris.MUTATIONS,
    *shortages.MUTATIONS,
    *jobsets.MUTATIONS,
    *untried.MUTATIONS,
)
