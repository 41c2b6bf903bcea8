"""The runtime shim: a small process that holds the runs of one directory and outlives the server.

``loop`` is the shim itself; each run has a ``supervisor``, a process of its own that is used again for later runs.
All of it uses the standard library only, so that it starts in milliseconds, stays small and needs nothing else of ours.
"""
