"""A world in virtual time: the real controller, store and executors on simulated programs, with faults from one seed.

Start with ``world.World``; ``promises.INVARIANTS`` says in sentences what must hold after every step, ``faults``
what goes wrong, and ``run.simulate`` runs one seed.
"""
