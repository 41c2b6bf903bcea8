"""Every use case, a module a noun: what doors call.

Each operation takes who calls first, then the server, then domain values, and returns domain values. How something is
sent and shown is each door's own.
"""
