"""The `holdfast` command: reads arguments, calls one function, turns its outcome into an exit code.

Exit codes: 0 clean; 1 could not start, or the configuration is wrong (the reason
is on standard error); 2 wrong usage. Nothing heavy is imported before a command
needs it: `holdfast version` must not pay for an HTTP stack.
"""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TextIO, TypeVar

from gateway import __version__

if TYPE_CHECKING:
    from gateway.settings.load import ConfigInvalid
    from gateway.settings.model import Settings
    from gateway.settings.units import Address

LOG_LEVELS: Final = ("debug", "info", "warning", "error")
_T = TypeVar("_T")
_FAILED: Final = 1
_INTERRUPTED: Final = 130
_UNREAD: Final = 141
"""As a shell counts a program that ended of a broken pipe."""
_LEAST_KEY: Final = 22
"""Characters of an API key: 128 random bits in base64."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _have_standard_streams()
    arguments, rest = _parser().parse_known_args(argv)
    if rest:
        arguments.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        code = command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _give_output_up()  # `| head` has read enough
        return _UNREAD
    except OSError as error:
        _give_output_up()
        print(f"holdfast: {error.strerror or error}", file=sys.stderr)
        return _FAILED
    return code


def _have_standard_streams() -> None:
    """Some supervisors start us without: printing would fail, and the next file would be taken for the stream."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _give_output_up() -> None:
    """Python would try once more at its end to write what is left, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdfast",
        description="Lets modern MCP clients (2026-07-28) use legacy MCP servers, without changing either.",
        epilog="New here? `holdfast demo` shows it at work. Each command has its own --help.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = commands.add_parser(
            name, help=text, description=text, allow_abbrev=False
        )
        # With itself, for what it does not know is to be told with its own usage.
        added.set_defaults(command=command, parser=added)
        return added

    serve = add("serve", _serve, "Run the gateway until SIGTERM or Ctrl-C.")
    source = serve.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--upstream", metavar="URL", type=_url, action=_Once, help="serve this one server, without a file"
    )
    source.add_argument(
        "--config", metavar="FILE", type=Path, help="read the configuration from this YAML file"
    )
    serve.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=_address,
        help="address for clients [what the file says, or 127.0.0.1:8080]",
    )
    serve.add_argument(
        "--admin",
        metavar="HOST:PORT",
        type=_address,
        help="address for /livez, /readyz, /metrics and /version [what the file says, or none]",
    )
    serve.add_argument(
        "--log-level", choices=LOG_LEVELS, help="least severe level to log [what the file says, or info]"
    )

    check = add(
        "check-config", _check_config, "Check a configuration file and print every error. Uses no network."
    )
    check.add_argument("config", metavar="FILE", type=Path, help="the YAML file to check")
    add("schema", _schema, "Print the JSON Schema of the configuration file.")
    add("keygen", _keygen, "Print a new random key for sealing.keys.")
    add(
        "hash-key",
        _hash_key,
        "Print the hash of an API key for auth.api_keys: of the key on standard input, or of a new one.",
    )
    demo = add(
        "demo", _demo, "Show the bridge at work, with a small legacy server and a modern client on loopback."
    )
    demo.add_argument(
        "--serve",
        action="store_true",
        help="run server and gateway for a client of your own, and print the URL",
    )
    probe = add(
        "probe", _probe, "Find out what a server is, and print a configuration for it. Calls no tool."
    )
    probe.usage = "holdfast probe [--json] [--authorization-env NAME] (URL | -- COMMAND ...)"
    probe.add_argument(
        "target",
        metavar="URL | -- COMMAND",
        nargs="+",
        help="the URL of a server, or the command that starts one",
    )
    probe.add_argument("--json", action="store_true", help="print JSON, for programs")
    probe.add_argument(
        "--authorization-env",
        metavar="NAME",
        help="send the value of this environment variable as the Authorization header",
    )
    add("version", _version, "Print the version.")
    return parser


class _Once(argparse.Action):
    """Said twice, the first would be forgotten in silence."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, *_: object
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"argument --{self.dest}: is given twice; several servers need a file: --config")
        setattr(namespace, self.dest, values)


def _address(text: str) -> "Address":
    from gateway.settings.units import parse_address  # noqa: PLC0415

    return _argument(parse_address, text)


def _url(text: str) -> str:
    from gateway.settings.units import parse_http_url  # noqa: PLC0415

    return _argument(parse_http_url, text)


def _argument(parse: Callable[[str], _T], text: str) -> _T:
    try:
        return parse(text)
    except ValueError as error:
        # Said in our words: argparse's own would repeat the value, and a URL may carry a token.
        raise argparse.ArgumentTypeError(str(error)) from None


def _serve(arguments: argparse.Namespace) -> int:
    with _heeding_signals():
        return _serve_now(arguments)


@contextlib.contextmanager
def _heeding_signals() -> Iterator[None]:
    """Heed them before the server can: the first process of a container is not ended by a signal that it does not.

    It would be killed after the whole time that it has for ending. What SIGHUP asks for is being done already.
    """
    on_term, on_hangup = signal.signal(signal.SIGTERM, _leave), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, on_term)
        signal.signal(signal.SIGHUP, on_hangup)


def _leave(*_: object) -> NoReturn:
    raise SystemExit(0)


def _serve_now(arguments: argparse.Namespace) -> int:
    from gateway.settings.load import ConfigInvalid  # noqa: PLC0415

    try:
        settings = _settings(arguments)
    except ConfigInvalid as invalid:
        return _report(arguments.config, invalid, sys.stderr)

    from gateway.process import serve  # noqa: PLC0415 - after the check: a wrong file is told without the HTTP stack

    try:
        return serve(settings, lambda: _settings(arguments))
    except ConfigInvalid as invalid:
        return _report(arguments.config, invalid, sys.stderr)
    except OSError as error:
        print(f"holdfast: cannot start: {error}", file=sys.stderr)
        return _FAILED


def _settings(arguments: argparse.Namespace) -> "Settings":
    from gateway.settings.load import from_upstream_url, load  # noqa: PLC0415

    if arguments.config is None:
        return from_upstream_url(
            arguments.upstream,
            arguments.listen,
            arguments.admin,
            os.environ,
            log_level=arguments.log_level,
        )
    given = {"listen": arguments.listen, "admin": arguments.admin, "log.level": arguments.log_level}
    overrides = {key: value for key, value in given.items() if value is not None}
    return load(arguments.config, environ=os.environ, overrides=overrides)


def _check_config(arguments: argparse.Namespace) -> int:
    from gateway.settings.load import ConfigInvalid, load, sealing_secrets  # noqa: PLC0415

    try:
        settings = load(arguments.config, environ=os.environ)
        keys = len(sealing_secrets(settings))
    except ConfigInvalid as invalid:
        return _report(arguments.config, invalid, sys.stdout)
    print(f"{arguments.config}: OK")
    print(f"  listen    {settings.listen}" + (f", admin {settings.admin}" if settings.admin else ""))
    print(f"  sealing   {_count(keys, 'key')}" + ("" if keys else ": a random one at each start"))
    for name in settings.upstreams:
        print(f"  upstream  {name} at {settings.path_of(name)}")
    return 0


def _schema(_: argparse.Namespace) -> int:
    from gateway.settings.schema import document  # noqa: PLC0415

    print(document(), end="")
    return 0


def _keygen(_: argparse.Namespace) -> int:
    import secrets  # noqa: PLC0415

    print(secrets.token_urlsafe(32))
    return 0


def _hash_key(_: argparse.Namespace) -> int:
    import hashlib  # noqa: PLC0415
    import secrets  # noqa: PLC0415

    given = "" if sys.stdin.isatty() else sys.stdin.readline().strip()
    if given and len(given) < _LEAST_KEY:
        # The hash is not a slow one: only a key that nobody can guess is safe behind it.
        print(f"holdfast: the key is too short: use {_LEAST_KEY} random characters or more", file=sys.stderr)
        return _FAILED
    key = given or secrets.token_urlsafe(32)
    if not given:
        print(f"key   {key}")
    print(f"hash  {hashlib.sha256(key.encode()).hexdigest()}")
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from gateway.demo.walkthrough import run  # noqa: PLC0415

    return run(serve=arguments.serve)


def _probe(arguments: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415
    import shutil  # noqa: PLC0415

    from gateway.errors import GatewayError, UpstreamUnauthorized  # noqa: PLC0415
    from gateway.relay.probe import probe  # noqa: PLC0415
    from gateway.relay.probe_report import as_json, as_text  # noqa: PLC0415
    from gateway.settings.units import parse_http_url  # noqa: PLC0415
    from gateway.settings.upstream import Upstream  # noqa: PLC0415
    from gateway.telemetry.logs import configure  # noqa: PLC0415

    given: list[str] = arguments.target
    target = given[0] if len(given) == 1 and given[0].startswith(("http://", "https://")) else given
    if len(given) == 1 and target is given and shutil.which(given[0]) is None:
        print("holdfast: there is no such command; a URL begins with http:// or https://", file=sys.stderr)
        return _FAILED
    try:
        where = {"url": parse_http_url(target)} if isinstance(target, str) else {"command": target}
    except ValueError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return _FAILED
    configure("error", stream=sys.stderr)
    variable: str | None = arguments.authorization_env
    credential = os.environ.get(variable) if variable else None
    if variable and not credential:
        print(f"holdfast: the environment variable {variable} is not set, or empty", file=sys.stderr)
        return _FAILED
    try:
        findings = asyncio.run(probe(Upstream.model_validate(where), authorization=credential))
    except GatewayError as error:
        # Some have the same words for the log and for a client.
        cause = "" if str(error) == error.message else f": {error}"
        if isinstance(error, UpstreamUnauthorized) and not credential:
            cause += " (--authorization-env NAME sends those in a variable)"
        print(f"holdfast: {error.message}{cause}", file=sys.stderr)
        return _FAILED
    print((as_json if arguments.json else as_text)(findings, target))
    return 0


def _version(_: argparse.Namespace) -> int:
    print(f"holdfast {__version__}")
    return 0


def _report(file: Path | None, invalid: "ConfigInvalid", stream: TextIO) -> int:
    """One line per problem, in a form that editors and people can both follow."""
    for problem in invalid.problems:
        print(f"{file}: {problem}" if file else f"holdfast: {problem}", file=stream)
    return _FAILED


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number or 'no'} {noun}s"
