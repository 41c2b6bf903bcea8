"""What Python programs use: to submit work and follow it, and in a run to know where they are.

The names of ``holdfast`` itself come from here. ``calls`` is what a run imports, and needs only the standard library.
"""
