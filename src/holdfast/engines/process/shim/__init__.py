"""The runtime shim: a small process that holds the runs of one directory and outlives the server.

``loop`` is the shim itself. Each run has a ``supervisor``, a process that is reused for later runs. All of it uses only
the standard library, so that it starts in milliseconds, stays small and depends on nothing else.
"""
