"""Row rules: what one row can break by itself, a module for each kind."""
