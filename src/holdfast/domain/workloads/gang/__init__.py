"""Gangs, pure: what becomes of a job whose attempt is over, and when time alone moves it on."""
