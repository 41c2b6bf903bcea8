"""Commands for whoever looks after a server and its machine."""
