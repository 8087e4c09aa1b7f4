"""How Spark finds `format("omnigraph")`: it looks for packages of this kind of name by itself."""

from omnigraph.connector.datasource import OmnigraphSource as DefaultSource

__all__ = ["DefaultSource"]
