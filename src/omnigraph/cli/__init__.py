"""The command line: data on standard output, messages on standard error."""
