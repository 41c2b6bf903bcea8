"""The REST API: ``create_app`` in ``app``, one module per noun in ``routes``."""
