"""Strict readers and writers of manifests: foreign text in, domain values out."""
