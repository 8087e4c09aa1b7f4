"""Routes: one module for each kind of request. Each route takes a request apart and delegates."""
