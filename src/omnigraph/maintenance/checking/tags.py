"""The check of tags: every tag names a commit that can be read, and no branch has its name."""

from __future__ import annotations

from omnigraph.errors import BranchNotFoundError, OmnigraphError, TagNotFoundError
from omnigraph.maintenance.checking.report import Finding, Invariant, Notebook
from omnigraph.manifest.layout import TAGS
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.tags import tag_path
from omnigraph.model.names import BranchName
from omnigraph.model.tags import Tag


def check_tags(manifest: Manifest, notebook: Notebook) -> None:
    """Check every tag of a graph."""
    try:
        survey = manifest.tags.survey()
    except OmnigraphError as failure:
        notebook.fail(Invariant.TAG, "tags", TAGS, failure)
        return
    notebook.count(Invariant.TAG, len(survey.tags) + len(survey.unreadable))
    for name, unreadable in survey.unreadable.items():
        notebook.fail(Invariant.TAG, f"tag {name}", tag_path(name), unreadable)
    for tag in survey.tags:
        _check_commit(manifest, tag, notebook)
        _check_name(manifest, tag, notebook)


def _check_commit(manifest: Manifest, tag: Tag, notebook: Notebook) -> None:
    try:
        manifest.at(manifest.find_tagged(tag))
    except OmnigraphError as failure:
        if _is_gone(manifest, tag):
            return
        place = tag_path(tag.name)
        step = f"'omnigraph tag delete {tag.name} --confirm', or restore the graph from a backup"
        subject = f"tag {tag.name}"
        notebook.fail(Invariant.TAG, subject, place, failure, step=step)


def _check_name(manifest: Manifest, tag: Tag, notebook: Notebook) -> None:
    try:
        manifest.names.find(BranchName(tag.name))
    except BranchNotFoundError:
        return
    except OmnigraphError:
        # The check of branches has reported it.
        return
    problem = "a branch has its name, too: both were created at once, and one creator was killed"
    step = f"delete one: 'omnigraph tag delete {tag.name}' or 'omnigraph branch delete {tag.name}'"
    finding = Finding(Invariant.TAG, f"tag {tag.name}", tag_path(tag.name), problem, step)
    notebook.find(finding)


def _is_gone(manifest: Manifest, tag: Tag) -> bool:
    """Whether the tag was deleted or made anew during the check."""
    try:
        return manifest.tags.find(tag.name).tag_id != tag.tag_id
    except TagNotFoundError:
        return True
