"""Test machinery that ships with the package: strategies for now; nothing else imports it."""
