"""Armada's dialect: its retry policies and error categories, compiled into the one rule model."""
