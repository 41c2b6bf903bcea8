"""The APIs over the network; each only converts between its protocol and ``service``."""
