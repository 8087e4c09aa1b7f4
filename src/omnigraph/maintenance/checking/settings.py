"""The check of settings: the object can be read, and every setting accepts its value."""

from __future__ import annotations

from omnigraph.errors import OmnigraphError
from omnigraph.maintenance.checking.report import Finding, Invariant, Notebook
from omnigraph.manifest.layout import SETTINGS
from omnigraph.manifest.settings import StoredSettings
from omnigraph.model.settings import Setting, describe_settings


def check_settings(stored: StoredSettings, notebook: Notebook) -> None:
    """Check the settings of a graph; those of a newer release are noted."""
    try:
        settings = describe_settings(stored.read())
    except OmnigraphError as failure:
        notebook.fail(Invariant.SETTING, "settings", SETTINGS, failure)
        return
    notebook.count(Invariant.SETTING, len(settings))
    for setting in settings:
        if setting.warning is not None:
            _report(setting, setting.warning, notebook)


def _report(setting: Setting, warning: str, notebook: Notebook) -> None:
    subject = f"setting {setting.key}"
    if setting.accepted is None:
        step = "nothing: a newer release set it, and this one preserves it"
        notebook.note(Finding(Invariant.SETTING, subject, SETTINGS, warning, step))
        return
    step = f"upgrade omnigraph, or run 'omnigraph settings unset {setting.key}'"
    notebook.find(Finding(Invariant.SETTING, subject, SETTINGS, warning, step))
