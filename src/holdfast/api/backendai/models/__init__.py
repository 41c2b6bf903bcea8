"""The requests and answers of Backend.AI's REST API, by the public field names of its version 26.9.

A request's unknown fields are errors. An answer may have more fields than upstream's, which its clients ignore.
"""
