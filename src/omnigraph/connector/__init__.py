"""The Spark connector: a graph as a data source of Spark, and its types as DataFrames."""
