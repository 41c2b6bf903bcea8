"""Reads JobSets (``jobset.x-k8s.io/v1alpha2``), Jobs (``batch/v1``) and the native short form into one model."""
