"""Server: graphs over HTTP, for programs that have an address and a token, and not the storage."""
