"""Draws ways to break the code at random, where the list of mutations only has those that somebody thought of."""
