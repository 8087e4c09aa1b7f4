"""Changing a schema: plan the steps, write new values, check new rules, publish once."""
