"""Codes: one per rule of the query language, each with the sentence the reference shows."""

from __future__ import annotations

from enum import StrEnum

from omnigraph.lang.diagnostics import Severity


class QueryCode(StrEnum):
    """Every rule a query can break. Append-only: programs and documents name these."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> QueryCode:
        """Give each code the sentence that the reference shows beside it."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    SYNTAX = "Q000", "The text does not follow the grammar."
    UNKNOWN_TYPE = "T1", "A type that is named must be one that the schema, or the language, has."
    UNKNOWN_EDGE = "T2", "An edge word must be the name of an edge type, whatever its case."
    UNKNOWN_PROPERTY = "T3", "A property must be one that its type declares."
    UNKNOWN_NAME = "T4", "A name that is read must be a parameter, or bound where it is read."
    CONFLICTING_NAME = "T5", "A variable is one thing: a parameter, a node of one type, or an edge."
    WRONG_END = "T6", "The ends of a traversal must have the types that its edge joins."
    UNDIRECTED = "T7", "An undirected traversal needs an edge whose two ends have one type."
    HOPS = "T8", "Hops need 1 <= m <= n; an edge variable, or an edge that cannot chain, one hop."
    NOTHING_BOUND = (
        "T9",
        "A match or an optional must bind a variable; all but a match must use one from outside.",
    )
    MISMATCH = "T10", "Values meet only if their types are equal or both numbers; < needs an order."
    ENUM_VALUE = "T11", "A text that meets an enum must be one of its values."
    NUMBER_RANGE = "T12", "A number must fit the type that it meets."
    MOMENT = "T13", "A date or datetime literal must be one of the calendar, in ISO-8601."
    TEXT_OPERATOR = "T14", "contains needs a list and an item, or two texts; starts_with two texts."
    NULL_VALUE = "T15", "Null equals nothing, and only a nullable property may be given it."
    CALL_PLACE = "T16", "A function must stand where its value has a meaning, and none in itself."
    AGGREGATE_ARGUMENT = "T17", "What is aggregated or grouped must be of a type that allows it."
    DUPLICATE_NAME = "T18", "Queries, parameters, columns and assignments each need their own name."
    ORDER = "T19", "An order key must have an order, and exist for each row of the result."
    LIMIT = "T20", "A limit must be a whole number from 0 up; nearest and rrf need one."
    ARGUMENTS = "T21", "A function must be given the arguments that it takes."
    FIXED = "T22", "What identifies a row cannot be assigned: key, id, and an edge's from and to."
    MISSING = "T23", "An insert must give every property that is neither nullable nor defaulted."
    MIXED_MUTATION = "T24", "A query inserts and updates, or it deletes; it does not do both."
    STAGE = (
        "T25",
        "A stage keeps variables under their own names, and values under names that 'as' gives.",
    )
    WRITTEN_BEFORE = (
        "T26",
        "A search of a mutation finds committed rows: no earlier statement may write what is read.",
    )
    PATH = (
        "T27",
        "A path is read by length, nodes and cost; its walk has named ends, and a weight a number.",
    )
    NEVER_NULL = "W1", "A test for null on a property that is never null has only one outcome."
    UNUSED_PARAMETER = "W2", "A parameter that is declared should be used."
    SAME_FOR_ALL = "W3", "A block of an update or a delete should use the row, or the row be named."

    @property
    def severity(self) -> Severity:
        """Codes that start with W are warnings."""
        return Severity.WARNING if self.startswith("W") else Severity.ERROR
