"""Local processes as runs: an engine in the server, and a shim process that is the parent of every run."""
