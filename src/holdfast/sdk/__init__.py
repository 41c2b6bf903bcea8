"""The Python interface: programs submit and follow work with it, and learn about the run they are in.

The names of ``holdfast`` itself come from here. ``calls`` is what a run imports, and needs only the standard library.
"""
