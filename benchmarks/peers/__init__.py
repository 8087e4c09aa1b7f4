"""Other graph databases: each in an environment and a process of its own, and free to be absent."""
