"""The pure core: values, lifecycle, policy and placement.

No I/O, no clock, no randomness and no ids of its own making: ``now``, jitter draws and ids come in as arguments. Open
``lifecycle`` first, then ``policy``.
"""
