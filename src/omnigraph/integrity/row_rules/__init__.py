"""Row rules: rules about one row alone, a module for each kind."""
