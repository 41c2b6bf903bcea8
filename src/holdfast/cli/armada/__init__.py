"""The commands of ``armadactl``, as Armada's users type them: they come in by the door, like any client of Armada's."""
