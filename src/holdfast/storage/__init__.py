"""What is stored: ``sql`` is the ``Store`` port; blobs and secrets are files beside it."""
