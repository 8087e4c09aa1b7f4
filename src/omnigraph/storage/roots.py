"""Graph URIs: plain paths, `file://` and `s3://`, validated once; and folders of other stores."""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, Self
from urllib.parse import unquote, urlsplit

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.model.arguments import require_path

# Nobody means a directory called `file:`, so `file` and `s3` are schemes even without slashes.
_SCHEME: Final = re.compile(r"(?i:file|s3)(?=:)|[A-Za-z][A-Za-z0-9+.\-]*(?=://)")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_URL_SYNTAX: Final = re.compile(r"[%#]")
_HINT: Final = "give a directory, file:///directory or s3://bucket/prefix"
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]")


@dataclass(frozen=True, slots=True)
class Root:
    """The location of one graph, a local directory or a prefix of an S3 bucket; or of exports.

    Attributes:
        uri: An absolute path without a scheme, or `s3://bucket/prefix`; never a trailing slash.
        bucket: The bucket, or None for a local directory.
    """

    uri: str
    bucket: str | None = None

    @classmethod
    def parse(cls, place: str | PathLike[str]) -> Self:
        """Parse a graph URI as users write it.

        >>> Root.parse("s3://lake/graphs/social/").uri
        's3://lake/graphs/social'
        >>> Root.parse("file:///data/my%20graph").uri
        '/data/my graph'
        """
        text = str(require_path(place, "the graph's place", hint=_HINT))
        scheme = _SCHEME.match(text)
        if not text.strip() or _CONTROL.search(text):
            message = f"{text!r} is not a graph URI"
            raise _invalid_uri(message)
        # Lance cuts every path at a '?' and would put a table's branches beside the graph.
        if "?" in unquote(text):
            message = f"{text} has a '?', which may not be part of a graph's path"
            raise _invalid_uri(message)
        if scheme is None:
            return cls._directory(text)
        match scheme[0].lower():
            case "file":
                return cls._local(text)
            case "s3":
                return cls._s3(text)
            case unknown:
                message = f"cannot open {text}: unknown scheme {unknown}://"
                raise _invalid_uri(message)

    @classmethod
    def in_store(cls, url: str) -> Self:
        """Parse the URL of a folder in any object store; of these, only S3 may have graphs.

        >>> Root.in_store("gs://lake/exports/").uri
        'gs://lake/exports'
        """
        scheme, _, rest = url.partition("://")
        if scheme in ("s3", "s3a"):
            return cls._s3(f"s3://{rest}")
        bucket, _, prefix = rest.partition("/")
        prefix = prefix.strip("/")
        if not bucket or not {"", ".", ".."}.isdisjoint(prefix.split("/")):
            message = f"{url} does not name a bucket and a prefix in it"
            hint = f"write {scheme.rstrip(':/')}://bucket/folder/name"
            raise InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_URI)
        return cls(f"{scheme}://{bucket}/{prefix}", bucket)

    @classmethod
    def _directory(cls, text: str) -> Self:
        try:
            return cls(str(Path(text).expanduser().absolute()))
        except RuntimeError as cause:
            message = f"{text} names the home directory of an unknown user"
            raise _invalid_uri(message) from cause

    @classmethod
    def _local(cls, text: str) -> Self:
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            message = f"{text} does not name a directory of this machine"
            raise _invalid_uri(message)
        path = unquote(parts.path)
        # urlsplit drops what follows a '#', and would name another directory.
        if "#" in text or _CONTROL.search(path):
            message = f"{text} is not a file URI: write '#' as %23"
            raise _invalid_uri(message)
        return cls(str(Path(path)))

    @classmethod
    def _s3(cls, text: str) -> Self:
        bucket, _, prefix = text.partition("://")[2].partition("/")
        prefix = prefix.strip("/")
        if not _BUCKET.fullmatch(bucket) or not prefix or "//" in prefix:
            message = f"{text} does not name a bucket and a prefix in it"
            raise _invalid_uri(message)
        # Lance reads these as URL syntax and obstore as plain characters: tables and objects of
        # one graph would be under two prefixes.
        if _URL_SYNTAX.search(prefix) or not {".", ".."}.isdisjoint(prefix.split("/")):
            message = f"{text} has a '%', '#', '.' or '..' that means two things in its prefix"
            raise _invalid_uri(message)
        return cls(f"s3://{bucket}/{prefix}", bucket)

    @property
    def is_local(self) -> bool:
        """Whether the graph is a directory of this machine."""
        return self.bucket is None

    @property
    def scheme(self) -> str:
        """The scheme of its store; empty for a directory of this machine."""
        return "" if self.is_local else self.uri.partition("://")[0]

    @property
    def prefix(self) -> str:
        """The path inside the bucket."""
        return self.uri.removeprefix(f"{self.scheme}://{self.bucket}/")

    def table_uri(self, location: str) -> str:
        """The URI of the dataset at `location` below this root."""
        return f"{self.uri}/{location}"


def _invalid_uri(message: str) -> InvalidInputError:
    return InvalidInputError(message, hint=_HINT, code=ErrorCode.INVALID_URI)
