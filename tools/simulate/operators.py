"""The operators of a world: they cordon and drain nodes, and let work onto them again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.errors import NotFound
from holdfast.service.catalogue.nodes import Nodes

if TYPE_CHECKING:
    from tools.simulate.chance import Chance
    from tools.simulate.scene import Scene

CORDONS_EVERY, FIRST_WITH_CORDONS = 13, 6
"""One seed of this many has nodes cordoned and drained, from this one on."""
_TIMES = (1, 5)
_DRAINED = 0.6
_LONGEST_S = 40.0


class Operators:
    """Everybody who looks after nodes."""

    def __init__(self, scene: Scene, chance: Chance) -> None:
        """Begin without requests.

        Args:
            scene: Where they are.
            chance: Decides what becomes of which node.
        """
        self._scene = scene
        self._chance = chance

    def plan(self, seed: int, until: float) -> None:
        """Put on the agenda what will be done until then, if this world has such people."""
        if seed % CORDONS_EVERY != FIRST_WITH_CORDONS:
            return
        chance, now = self._chance, self._scene.agenda.now()
        for _ in range(chance.randint(*_TIMES)):
            self._scene.agenda.at(chance.moment(now, until), self._scene.willing(self._close))

    def _close(self) -> None:
        """Cordon or drain a node, and let work onto it again later."""
        names = sorted({node.name for node in self._scene.store().nodes()})
        if not names:
            return
        name, drain = self._chance.choice(names), self._chance.happens(_DRAINED)
        self._scene.trace.say(f"asked to {'drain' if drain else 'cordon'} {name}")
        Nodes(self._scene.store(), self._scene.agenda).cordon(name, "as you like it", drain=drain)
        later = self._scene.willing(partial(self._open, name))
        self._scene.agenda.after(self._chance.moment(1.0, _LONGEST_S), later)

    def _open(self, name: str) -> None:
        self._scene.trace.say(f"asked to uncordon {name}")
        try:
            Nodes(self._scene.store(), self._scene.agenda).uncordon(name)
        except NotFound as error:
            self._scene.trace.say(str(error))

    def make_peace(self) -> None:
        """Let work onto every node."""
        for name in list(self._scene.store().catalogue().cordons):
            self._scene.store().delete_cordon(name)
