"""The door for clients of Iris, Fluster's heir: its own client and command, unmodified, come in here."""
