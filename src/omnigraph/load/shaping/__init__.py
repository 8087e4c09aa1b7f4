"""Shaping: raw rows made into the typed rows of a delta, and violations of the others.

Pure, and the same in every process: each reader of an input, in this process or in an executor of
Spark, calls `shape_lines`, `shape_columns` or `shape_values` for each batch. A batch
is an Arrow record batch whose column `POSITION` has the row's `positions.position`: the number of
its split and the line or row within it. Everything else follows from it: the origin that reports
show, the id that is minted where none is given, and the order of rows.

Nearly all rows are shaped a column at a time (`attempts`). Rows in which anything is in doubt are
found by halving, and converted value by value (`integrity.convert`), with the same outcome.
"""
