"""Graph algorithms: what each computes, and how either engine does it."""
