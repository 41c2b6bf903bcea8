"""Tools for AI agents, over the Model Context Protocol: what they may do is set by whoever starts it."""
