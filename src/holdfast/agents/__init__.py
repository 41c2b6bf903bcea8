"""Tools for AI agents, over the Model Context Protocol; whoever starts them sets what they may do."""
