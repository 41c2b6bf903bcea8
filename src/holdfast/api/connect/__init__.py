"""Connect: the protocol of several doors, calls over HTTP/1.1 with Protocol Buffers or JSON."""
