"""The only writer of lifecycle state: takes requests and reports in, decides, commits, publishes.

Start with ``controller.Controller.tick``. ``state`` is its memory; each kind of ``workloads`` collects facts,
has the domain decide, and stores what follows.
"""
