"""Where callers come in, and who they are."""
