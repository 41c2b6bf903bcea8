"""The use cases, over the ports: submit, control, query, explain, and edit the catalogue.

Decides what a caller may do and what an answer consists of; takes and returns domain values, so that every way
in (REST today) only converts. One module per use case.
"""
