"""File formats that loads and exports share: lines of text, compression, and sinks."""
