"""Armada's dialect: its retry policies and error categories, compiled into the native model."""
