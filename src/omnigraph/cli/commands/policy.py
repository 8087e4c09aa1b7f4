"""`omnigraph policy`: validate and test a policy, and explain what it says to a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import options, render
from omnigraph.cli.exits import Exit

if TYPE_CHECKING:
    from omnigraph.policy.questions import AccessQuestion, Answer

group = typer.Typer(help="Validate, test and explain policies.", no_args_is_help=True)

PolicyFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE", envvar="OMNIGRAPH_POLICY", help="The policy: a .toml or a .cedar file."
    ),
]


@group.command("validate")
def validate(file: PolicyFile, *, json: options.Json = False) -> None:
    """Check that every rule is valid, and names only actions and things that exist."""
    from omnigraph.policy.policies import AccessPolicy

    policy = AccessPolicy.read(file)
    facts = {
        "policy": file,
        "rules": len(policy.rules.rules),
        "groups": len(policy.groups),
        "tests": len(policy.tests),
    }
    if json:
        render.show_json(facts)
    else:
        render.show_facts(facts)


@group.command("test")
def run_tests(file: PolicyFile, *, json: options.Json = False) -> None:
    """Ask the questions of the policy's own tests; fail if one is not answered as expected."""
    from omnigraph.errors import InvalidInputError
    from omnigraph.policy.policies import AccessPolicy

    policy = AccessPolicy.read(file)
    if not policy.tests:
        message = f"{file} has no tests"
        raise InvalidInputError(message, hint="add [[tests]] with actor, action, branch and expect")
    results = [(test, policy.answer(test.question)) for test in policy.tests]
    failures = [
        (test, answer) for test, answer in results if answer.is_allowed is not test.expects_allowed
    ]
    if json:
        render.show_json(
            {
                "passed": len(results) - len(failures),
                "failed": [_facts(test.question, answer) for test, answer in failures],
            }
        )
    else:
        for test, answer in failures:
            expected = "be allowed" if test.expects_allowed else "be denied"
            render.show_text(f"{_words(test.question)} should {expected}: {answer.why}\n")
        render.say(f"{len(results) - len(failures)} passed, {len(failures)} failed")
    if failures:
        raise typer.Exit(Exit.INVALID)


@group.command("explain")
def explain(
    file: PolicyFile,
    *,
    actor: options.Actor = None,
    action: Annotated[
        str, typer.Option("--action", metavar="ACTION", help="Such as read, mutate or merge.")
    ],
    graph: Annotated[
        str, typer.Option("--graph", metavar="NAME", help="The graph, as rules name it.")
    ] = "",
    branch: Annotated[
        str | None,
        typer.Option("--branch", metavar="NAME", help="The branch; the graph itself by default."),
    ] = None,
    type_name: Annotated[
        str | None, typer.Option("--type", metavar="NAME", help="A type on the branch.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="NAME",
            help="The branch that is merged, or that a new branch starts at.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Say whether an actor may do something, and which rule decides it."""
    from omnigraph.policy.actions import Action
    from omnigraph.policy.policies import AccessPolicy
    from omnigraph.policy.questions import AccessQuestion, Resource

    if type_name is not None and branch is None:
        message = "a type is on a branch: give --branch too"
        raise typer.BadParameter(message, param_hint="--type")
    resource = Resource(graph, branch, type_name)
    question = AccessQuestion(actor, Action.parse(action), resource, source)
    answer = AccessPolicy.read(file).answer(question)
    if json:
        render.show_json(_facts(question, answer))
        return
    decision = "allowed" if answer.is_allowed else "denied"
    render.show_facts({"question": _words(question), "answer": decision, "why": answer.why})
    for fault in answer.faults:
        render.say(f"warning: {fault}")


def _words(question: AccessQuestion) -> str:
    merged = "" if question.source is None else f" from {question.source}"
    return f"{question.principal}: {question.action} {question.resource}{merged}"


def _facts(question: AccessQuestion, answer: Answer) -> dict[str, object]:
    return {
        "actor": question.actor,
        "action": question.action,
        "graph": question.resource.graph,
        "branch": question.resource.branch,
        "type": question.resource.type_name,
        "source": question.source,
        "allowed": answer.is_allowed,
        "rules": list(answer.rules),
        "faults": list(answer.faults),
    }
