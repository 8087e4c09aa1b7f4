"""A graph's settings: `graph.settings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.model.settings import (
    Setting,
    SettingKey,
    describe_setting,
    describe_settings,
    value_of,
)
from omnigraph.policy.actions import Action

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.manifest.settings import StoredSettings


class GraphSettings:
    """A graph's settings: `graph.settings`. They hold for all its branches."""

    def __init__(self, graph: Graph, stored: StoredSettings) -> None:
        self._graph = graph
        self._stored = stored

    def get(self, key: str) -> str | int:
        """The value of a setting: as it was set, or its default.

        Raises:
            InvalidParameterError: there is no such setting.
            NotAllowedError: the policy does not let the actor read the graph.
            FormatError: a newer release stored a value that this one does not accept.
        """
        wanted = SettingKey.parse(key)
        self._require_readable()
        return value_of(self._stored.read(), wanted)

    def list(self) -> tuple[Setting, ...]:
        """Every setting with its value, its default and where the value comes from.

        Settings of a newer release are listed last, with a warning.

        Raises:
            NotAllowedError: the policy does not let the actor read the graph.
        """
        self._require_readable()
        return describe_settings(self._stored.read())

    def _require_readable(self) -> None:
        """Refuse actors that can neither read the graph itself nor change its settings."""
        self._graph.authority.require(Action.READ, Action.ADMIN)

    def set(self, key: str, value: str | int) -> Setting:
        """Set a setting, and return it. Other processes use it within some seconds.

        Raises:
            InvalidParameterError: there is no such setting, or it does not accept the value.
                Nothing changed.
            ConflictError: other processes kept changing settings. Nothing changed.
            NotAllowedError: the handle is on a point of history, was opened read-only, or the
                policy forbids it.
        """
        wanted = SettingKey.parse(key)
        self._graph.require_unblocked()
        self._graph.authority.require(Action.ADMIN)
        self._stored.set(wanted, value)
        return describe_setting(wanted, {wanted: value})

    def unset(self, key: str) -> Setting:
        """Give a setting its default again, and return it.

        Raises:
            InvalidParameterError: there is no such setting.
            ConflictError: other processes kept changing settings. Nothing changed.
            NotAllowedError: the handle is on a point of history, was opened read-only, or the
                policy forbids it.
        """
        wanted = SettingKey.parse(key)
        self._graph.require_unblocked()
        self._graph.authority.require(Action.ADMIN)
        self._stored.unset(wanted)
        return describe_setting(wanted, {})
