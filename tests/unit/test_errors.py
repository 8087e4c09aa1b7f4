"""Errors: one class per reaction, one code per cause, whole after a journey between processes."""

import copy
import inspect
import pickle
from typing import Final

import pytest

from omnigraph import errors
from omnigraph.errors import ErrorCode, OmnigraphError

KINDS: Final = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, OmnigraphError)
]

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@every_kind
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling_whole(kind: type[OmnigraphError], protocol):
    error = kind(
        "branch main moved from a to b",
        hint="read it again",
        code=ErrorCode.OBJECT_CHANGED,
        expected=3,
        actual=None,
        names=("a", "b"),
    )
    arrived = pickle.loads(pickle.dumps(error, protocol))

    assert type(arrived) is kind
    assert vars(arrived) == vars(error)
    assert arrived.args == error.args
    assert str(arrived) == str(error) == "branch main moved from a to b (read it again)"


@every_kind
def test_an_error_can_be_copied(kind: type[OmnigraphError]):
    error = kind("wrong", hint="right it", key="value")

    assert vars(copy.copy(error)) == vars(copy.deepcopy(error)) == vars(error)


def test_what_was_noted_on_an_error_travels_with_it():
    error = errors.StorageError("reading failed")
    error.add_note("in partition 7")

    assert pickle.loads(pickle.dumps(error)).__notes__ == ["in partition 7"]


@every_kind
def test_every_class_names_its_own_default_code(kind: type[OmnigraphError]):
    assert "default_code" in vars(kind)
    assert kind("wrong").code is kind.default_code


def test_no_two_reactions_share_a_default_code():
    defaults = [kind.default_code for kind in KINDS if kind is not OmnigraphError]

    assert len(set(defaults)) == len(defaults)


def test_no_two_codes_share_a_word():
    # An enumeration makes a repeated value an alias without a sound.
    assert list(ErrorCode.__members__) == [each.name for each in ErrorCode]


def test_a_code_is_spelt_as_it_is_named():
    assert all(each.value == each.name.lower() for each in ErrorCode)


def test_a_message_without_a_hint_stands_alone():
    assert str(OmnigraphError("wrong")) == "wrong"


def test_who_catches_builtin_errors_catches_ours():
    assert issubclass(errors.InvalidInputError, ValueError)
    assert issubclass(errors.NotFoundError, LookupError)


def test_only_what_planning_again_or_waiting_can_cure_is_retryable():
    retryable = {kind for kind in KINDS if kind.retryable}

    assert retryable == {
        errors.ConflictError,
        errors.StaleHeadError,
        errors.TableConflictError,
        errors.StorageError,
        errors.EmbeddingError,
    }
