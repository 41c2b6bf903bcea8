"""Checks the whole of Holdfast in virtual time: real parts, faults from one seed, and what holds after every step.

Start with ``world.World``; ``promises.INVARIANTS`` says in sentences what must hold, ``faults`` what goes wrong, and
``run.simulate`` runs one seed.
"""
