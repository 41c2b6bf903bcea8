"""Gangs, pure: what becomes of a job whose attempt is over, and when it moves on by time alone."""
