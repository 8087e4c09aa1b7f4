"""Policy: which actor may do what, to which branch and which type, as rules in Cedar."""
