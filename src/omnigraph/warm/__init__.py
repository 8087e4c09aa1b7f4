"""The starter: a process with everything imported, forking a copy for each command."""
