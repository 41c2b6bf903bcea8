"""The Python client of the REST API; ``cli`` uses it for everything it does.

with Client("http://127.0.0.1:7070", token) as client:
    job = client.submit({"name": "hello", "command": ["echo", "hello"]})
    print(client.why(job.id).headline)
"""

from holdfast.client.client import Client

__all__ = ["Client"]
