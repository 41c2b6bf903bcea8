"""The REST API: ``endpoints`` says what there is and calls operations, ``serving`` speaks HTTP."""
