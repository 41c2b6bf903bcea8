"""The keeper: a small process of its own that starts, watches and ends runs, and outlives the server.

It uses the standard library only and nothing else of Holdfast, so that it starts in milliseconds and stays
small: the cost of starting a program grows with the size of its parent.
"""
