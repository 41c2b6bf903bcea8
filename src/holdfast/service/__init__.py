"""The use cases, over the ports: submit, control, query, explain, and edit the catalogue.

They take and return domain values, so that each API only converts.
"""
