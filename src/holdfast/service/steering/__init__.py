"""What can be asked of a piece of work that is there: one way to ask, and the rules of each kind."""
