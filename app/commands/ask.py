"""`shardwise ask`: a question or a fact about a plan, of a running service or made on the spot."""

import argparse
from pathlib import Path

from app.commands.files import content_of, print_document, readable, say
from projector.errors import InvalidDescription

HELP = "ask about a plan, or state a fact and see what changes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """TEXT, TRACE..., --request, or --plan with --url; --json."""
    parser.add_argument("text", metavar="TEXT", help="'which first?', 'why not tp 4?', 'TP must stay 8', ...")
    parser.add_argument("trace", type=Path, nargs="*", metavar="TRACE", help="files, folders or archives of one job")
    parser.add_argument("--request", type=Path, metavar="FILE", help="request as JSON, - for stdin (keys: see the API)")
    parser.add_argument("--plan", metavar="ID", help="a plan of a running service, in place of TRACE and --request")
    parser.add_argument("--url", metavar="URL", help="the service --plan is of (default http://127.0.0.1:8421)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Answer once."""
    from agents.conversation.records import MOST_MESSAGE

    if not 1 <= len(arguments.text) <= MOST_MESSAGE:
        raise InvalidDescription(f"a message of {len(arguments.text)} characters, not 1 to {MOST_MESSAGE}")
    if arguments.plan is not None:
        if arguments.trace or arguments.request is not None:
            raise InvalidDescription("--plan beside a trace or a request", hint="give one of them")
        return _of_service(arguments)
    if arguments.url is not None:
        raise InvalidDescription("--url without --plan", hint="name the plan of that service with --plan ID")
    if not arguments.trace and arguments.request is None:
        raise InvalidDescription("nothing to ask about", hint="give a TRACE, --request FILE, or --plan ID")
    return _here(arguments)


def _here(arguments: argparse.Namespace) -> int:
    from agents.conversation.converse import converse
    from agents.request import PlanRequest
    from app.settings import load_settings
    from app.tables_talk import show_answer
    from app.validation import parse
    from app.wiring import command_planner

    request = parse(PlanRequest, content_of(arguments.request)) if arguments.request is not None else PlanRequest()
    traces = readable(arguments.trace)
    with command_planner(load_settings(), say) as planner:
        result = planner.plan(request, traces).result
        answer, _, _ = converse(arguments.text, request, result, lambda other: planner.plan(other, traces).result)
    if arguments.json:
        print_document(answer)
    else:
        show_answer(answer.reading, answer.statements)
    return 0


def _of_service(arguments: argparse.Namespace) -> int:
    from app.client import post_message
    from app.tables_talk import show_answer

    turn = post_message(arguments.url or "http://127.0.0.1:8421", arguments.plan, arguments.text)
    if arguments.json:
        print_document(turn)
    else:
        show_answer(turn.reading, turn.statements)
    return 0
