"""Backend.AI's sessions: jobs whose retries are sessions of their own, with kernels (BEP "Native Session Retry").

Read ``model`` first, the records; then ``policy``, what a session asks for, and ``records``, how they follow a job.
"""
