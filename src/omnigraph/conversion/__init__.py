"""Conversion: values of one type as values of another one, exactly or not at all."""
