"""Calls of Backend.AI's door: signed by a keypair, and answered about sessions."""
