"""What tests build on: a local object store, builders and fakes. No mocks."""
