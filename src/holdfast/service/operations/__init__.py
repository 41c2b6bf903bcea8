"""The use cases that doors call, one module for each noun.

Each operation takes the caller first, then domain values, and returns domain values. Each door has its own format for
requests and answers.
"""
