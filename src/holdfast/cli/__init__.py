"""The command line, over the public REST interface only.

Read ``main``, then ``command`` (what a command is), then one file of ``commands``.
"""
