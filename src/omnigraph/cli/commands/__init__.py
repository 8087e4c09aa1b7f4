"""One module per command or group; each imports what it needs only when it runs."""
