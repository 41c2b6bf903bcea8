"""The demo: a batch of real programs that fail in every way there is, run by an embedded server, and its outcome.

It uses the public API only. Read ``batch`` (what is run and what must come of it), then ``__main__``.
"""
