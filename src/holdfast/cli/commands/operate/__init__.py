"""Commands for operators of a server and its machine."""
