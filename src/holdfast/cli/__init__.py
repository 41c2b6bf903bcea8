"""The command line: people's way in, over the public REST interface only.

Read ``main``, then ``command`` (what a command is), then one file of ``commands``.
"""
