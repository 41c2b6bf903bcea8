"""Tokens of an OpenID Connect issuer: its keys, and whose a token is that is signed with one of them."""
