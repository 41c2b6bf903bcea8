"""The door of Iris, Fluster's successor, for its own client and command, unmodified."""
