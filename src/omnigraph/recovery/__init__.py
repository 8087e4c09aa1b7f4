"""Recovery: distinguishes interrupted writes from those in flight, and finishes or undoes them."""
