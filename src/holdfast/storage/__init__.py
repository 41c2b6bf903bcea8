"""Storage: ``sql`` implements the ``Store`` port; blobs and secrets are files beside the database."""
