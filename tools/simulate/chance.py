"""All randomness of a world, from its one seed."""

from __future__ import annotations

import random  # noqa: TID251 - a seeded source is what this module is for


class Chance(random.Random):
    """A seeded source; equal seeds give equal draws on every machine."""

    def happens(self, probability: float) -> bool:
        """Whether something of that probability happens now."""
        return self.random() < probability

    def moment(self, begin: float, end: float) -> float:
        """Draw an instant, in whole milliseconds so that a trace can be read."""
        return round(self.uniform(begin, end), 3)
