"""Adapters of the ``Store`` port: ``memory`` for tests and worlds in virtual time, ``sql`` for everything durable."""
