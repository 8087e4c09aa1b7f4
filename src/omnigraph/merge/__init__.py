"""Merge: bringing what one branch changed to another, row by row, in one commit."""
