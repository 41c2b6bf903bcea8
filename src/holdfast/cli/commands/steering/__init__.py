"""Commands that control work: cancel, hold, preempt, reprioritize, retry, rerun, suspend, restart."""
