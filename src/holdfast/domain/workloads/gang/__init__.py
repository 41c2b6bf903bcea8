"""Gangs, pure: what happens to a job whose attempt is over, and when it moves on by time alone."""
