"""Finds this machine's GPUs, and tells programs which of them to use."""
