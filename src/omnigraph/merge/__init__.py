"""Merge: applies the changes of one branch to another, row by row, in one commit."""
