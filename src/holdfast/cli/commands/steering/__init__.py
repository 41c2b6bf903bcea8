"""Commands that change what becomes of work: cancel, hold, retry, rerun, suspend, restart."""
