"""What every front door (REST today) needs to reach the use cases: reads what was sent, cuts lists, builds answers.

Decides what a request means; leaves the protocol (paths, media types, statuses, headers) to the ways in.
"""
