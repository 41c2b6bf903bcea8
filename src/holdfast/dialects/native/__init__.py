"""The native dialect: ``holdfast.dev/v1`` manifests, read strictly and written canonically."""
