"""The write protocol: one function that every writer goes through, from plan to publish."""
