"""Documents: what a server and a client in Python send each other, without loss."""
