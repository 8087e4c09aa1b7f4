"""The write protocol: one function that every writer runs through, from plan to publish."""
