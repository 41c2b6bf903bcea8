"""Keeps the parts of the documentation that restate the code in step with it.

A page marks such a part with ``<!-- generated:NAME -->`` and ``<!-- /generated -->``; ``blocks`` knows how to
write it, ``python -m tools.docs`` rewrites it, and ``--check`` fails when it is stale.
"""
