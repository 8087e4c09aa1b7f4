"""File systems that only Spark knows, such as HDFS: their files, found and read by Spark.

Python has no client of them, so Spark reads each file and gives its contents to the task that
shapes its rows: forms, dialects and reports are those of any other file. A file is read whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from omnigraph.engine.spark.failures import SPARK_FAILURES, silence_loggers, useful_line
from omnigraph.errors import ErrorCode, InvalidInputError, NotFoundError, StorageError
from omnigraph.limits import LOAD_INPUTS_MAX
from omnigraph.load.sources import SparkFile
from omnigraph.load.splits import FileSplit, SharedSplit

LOAD_SPARK_FILE_BYTES_MAX: Final = 512 << 20
"""The size of a file that Spark reads for a task, which then has it in memory as a whole."""


_READER: Final = "binaryFile"
_FOUND: Final = ("path", "length", "unix_micros(modificationTime) AS modified_at")
_CONTENT: Final = "content"
_PATTERN: Final = re.compile(r"[\[\]{}*?\\]")
_UNKNOWN: Final = re.compile(r"UnsupportedFileSystem|No FileSystem for scheme|Wrong FS")


def find_files(session: SparkSession, url: str) -> list[SparkFile]:
    """The files that a URL names, itself, as a folder or as a pattern of Hadoop's; sorted.

    Names that begin with `_` or `.` are left out.
    """
    silence_loggers()
    try:
        reader = session.read.format(_READER).option("recursiveFileLookup", "true")
        found = reader.load(url).selectExpr(*_FOUND).orderBy("path").limit(LOAD_INPUTS_MAX + 1)
        # A row for each file.
        files = [SparkFile(*row) for row in found.collect()]
    except SPARK_FAILURES as cause:
        raise _listing_error(url, cause) from cause
    if not files:
        message = f"{url[:200]} has no files to load"
        raise NotFoundError(message, hint="names that begin with _ or . are not read")
    for file in files:
        if file.byte_count > LOAD_SPARK_FILE_BYTES_MAX:
            most = f"{LOAD_SPARK_FILE_BYTES_MAX:,} bytes"
            message = f"{file.url} has {file.byte_count:,} bytes, and Spark gives at most {most}"
            hint = "write it as several files, or load Spark's DataFrame of it in Python"
            raise InvalidInputError(message, hint=hint)
    return files


def _listing_error(url: str, cause: Exception) -> NotFoundError | InvalidInputError | StorageError:
    reason = useful_line(cause)
    if isinstance(cause, AnalysisException) and "PATH_NOT_FOUND" in str(cause):
        message = f"file {url[:200]} does not exist"
        return NotFoundError(message, hint="check the path, or the pattern", path=url)
    if _UNKNOWN.search(str(cause)):
        message = f"Spark has no file system for {url[:200]}: {reason}"
        hint = "give the session its jar and its settings: spark.jars.packages, spark.hadoop.fs.…"
        return InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_URI)
    message = f"{url[:200]} cannot be read by Spark: {reason}"
    hint = "check the address, and what HADOOP_CONF_DIR and spark.hadoop.… say of it"
    return StorageError(message, hint=hint, path=url)


def numbers_of_files(splits: tuple[SharedSplit, ...]) -> dict[str, int]:
    """By URL, the numbers of the splits that Spark has to read."""
    return {
        split.file.path.url: number
        for number, split in enumerate(splits)
        if isinstance(split, FileSplit) and isinstance(split.file.path, SparkFile)
    }


def files_frame(session: SparkSession, urls: Mapping[str, int]) -> DataFrame:
    """The files at these URLs, each a row with its contents."""
    paths = [_PATTERN.sub(r"\\\g<0>", url) for url in urls]
    return session.read.format(_READER).load(paths).selectExpr(*_FOUND, _CONTENT)


def read_contents(
    splits: tuple[SharedSplit, ...], numbers: Mapping[str, int], batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, FileSplit]]:
    """The splits of the files in some batches, with their contents. Runs in an executor."""
    for batch in batches:
        *found, contents = batch.columns
        values = (column.to_pylist() for column in found)
        for url, byte_count, modified_at, content in zip(*values, contents, strict=True):
            number = numbers[url]
            split = splits[number]
            assert isinstance(split, FileSplit), "it has a file"
            if split.file.path != SparkFile(url, byte_count, modified_at):
                message = f"{url} was replaced while it was loaded"
                raise StorageError(message, hint="load again while no other process writes to it")
            yield number, replace(split, file=replace(split.file, path=content.as_buffer()))
