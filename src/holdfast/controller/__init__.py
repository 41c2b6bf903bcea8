"""The one writer of lifecycle state: takes requests and observations in, decides, commits, publishes.

Start with ``controller.Controller.tick``; ``world`` is its memory, ``coordinator`` drives the tables of
``domain.lifecycle``, ``handlers`` do the phases' work.
"""
