"""Adapters of the ``Store`` port: ``memory`` for tests and simulations, ``sql`` for everything durable."""
