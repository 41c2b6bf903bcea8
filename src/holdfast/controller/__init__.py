"""The only writer of lifecycle state: takes requests and reports in, decides, commits, publishes.

Start with ``controller.Controller.tick``. ``state`` is its memory, ``coordinator`` drives the tables of
``domain.lifecycle``, ``handlers`` do the work of each phase.
"""
