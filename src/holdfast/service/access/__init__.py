"""Access: rights checked by operations, tokens, and work with the parts that a caller may not see left out."""
