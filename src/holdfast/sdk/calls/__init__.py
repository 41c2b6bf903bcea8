"""The part of a Python program that runs in a job: which run it is, and one call of a function as a program.

It needs nothing but the standard library, so that a run begins at once.
"""
