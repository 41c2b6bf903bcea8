"""The world is worth something for devices, too: the code, broken in named ways, is caught within few seeds each."""

# ruff: noqa: ANN401, SLF001 - what breaks private parts must reach them, and takes whatever they take

from __future__ import annotations

from typing import Any

import pytest

from holdfast.controller import publisher
from holdfast.controller.nodes.cordons import Cordons
from holdfast.controller.state import ControllerState
from holdfast.controller.workloads import domains
from holdfast.domain.devices import ANY
from holdfast.domain.lifecycle import RunStatus
from holdfast.domain.placement import fit as placement_fit
from holdfast.domain.placement import scheduling
from holdfast.domain.placement.assignment import DeviceLedger, all_free, choose_devices
from holdfast.domain.placement.fit import fit
from holdfast.domain.record import evolve
from tests.property.breaks import Break, assert_noticed
from tools.simulate.device_world import DEVICES_EVERY

TWICE = {"devices-apart", "capacity-adds-up"}


def a_round_gives_one_device_to_several(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scheduling, "take_devices", lambda *_: None)


def a_new_controller_does_not_know_who_has_which(patch: pytest.MonkeyPatch) -> None:
    def forgetful(self: DeviceLedger, key: Any, devices: Any) -> None:
        self.drop_place(key)
        if devices:
            self._devices[key], self.free[key] = devices, all_free(devices)

    patch.setattr(DeviceLedger, "set_place", forgetful)


def devices_are_given_back_as_soon_as_a_run_is_to_stop(patch: pytest.MonkeyPatch) -> None:
    put_runs = ControllerState.put_runs

    def early(self: ControllerState, active: Any, runs: Any) -> None:
        put_runs(self, active, changed := list(runs))
        for run in changed:
            if run.status is RunStatus.TERMINATING and run.uid in self.capacity.devices.held:
                self.capacity.devices.release(run.uid)

    patch.setattr(ControllerState, "put_runs", early)


def an_executor_is_not_told_of_devices(patch: pytest.MonkeyPatch) -> None:
    order = publisher._order
    patch.setattr(publisher, "_order", lambda *known: evolve(order(*known), gpus=()))


def any_kind_will_do(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        scheduling, "choose_devices", lambda devices, free, request, _: choose_devices(devices, free, request, ANY)
    )


def a_device_in_trouble_is_given_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeviceLedger, "to_give", lambda self: {key: dict(free) for key, free in self.free.items()})


def nobody_counts_what_the_cluster_has(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scheduling.Round, "_cluster_lacks", lambda *_: "")


def places_are_kept_free_for_who_waits_for_a_broken_device(patch: pytest.MonkeyPatch) -> None:
    def hopeful(shape: Any, places: Any) -> Any:
        return fit(shape, places, {place.key: place.capacity for place in places})

    patch.setattr(scheduling, "fit_alone", hopeful)


def a_topology_domain_need_have_no_devices(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(domains, "fit_alone", lambda *_: [])


def devices_are_not_avoided(patch: pytest.MonkeyPatch) -> None:
    for module in (placement_fit, scheduling):
        patch.setattr(module, "without_avoided", lambda _shape, _key, free: free)


def a_new_controller_knows_no_cordons(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cordons, "restore", lambda *_: None)


def a_device_that_falls_ill_is_still_given_away(patch: pytest.MonkeyPatch) -> None:
    set_place = DeviceLedger.set_place

    def careless(self: DeviceLedger, key: Any, devices: Any) -> None:
        well = tuple(evolve(each, health="") if each.health.startswith("Xid") else each for each in devices)
        set_place(self, key, well)

    patch.setattr(DeviceLedger, "set_place", careless)


BREAKS: dict[str, Break] = {
    "a round gives one device to several": (a_round_gives_one_device_to_several, TWICE, 3),
    "a new controller does not know who has which": (a_new_controller_does_not_know_who_has_which, TWICE, 3),
    "devices are given back as soon as a run is to stop": (
        devices_are_given_back_as_soon_as_a_run_is_to_stop,
        TWICE,
        3,
    ),
    "an executor is not told of devices": (an_executor_is_not_told_of_devices, {"devices-as-asked"}, 3),
    "any kind will do": (any_kind_will_do, {"devices-as-asked"}, 24),
    "a device in trouble is given away": (a_device_in_trouble_is_given_away, {"devices-as-asked", "cordoned-stays"}, 3),
    "nobody counts what the cluster has": (nobody_counts_what_the_cluster_has, {"devices-apart"}, 17),
    "places are kept free for who waits for a broken device": (
        places_are_kept_free_for_who_waits_for_a_broken_device,
        {"all-ends"},
        1641,  # a job set has domains of its own, or of few nodes; as below
    ),
    "a new controller knows no cordons": (a_new_controller_knows_no_cordons, {"cordoned-stays"}, 17),
    "a device that falls ill is still given away": (
        a_device_that_falls_ill_is_still_given_away,
        {"cordoned-stays"},
        31,
    ),
    "devices are not avoided": (devices_are_not_avoided, {"devices-avoided"}, 3),
    "a topology domain need have no devices": (a_topology_domain_need_have_no_devices, {"all-ends"}, 661),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_noticed(BREAKS[name], monkeypatch, every=DEVICES_EVERY)
