"""Finds the GPUs of this machine, and tells programs which of them are theirs."""
