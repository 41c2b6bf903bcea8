"""The use cases, over the ports: submit, control, query, explain, and edit the catalogue.

They take and return domain values, so that every API only converts. One module per use case.
"""
