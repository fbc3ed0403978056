"""A stdio server without an SDK, odd in the ways its arguments name. Starts fast: standard library only.

    python stdio_oddity.py [ODDITY…]

Its tools are what it is asked to do: `echo`, `environment`, `exit`, `giant`, `garbled`, `unfinished`, `quiet`, …
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]
ODDITIES = set(sys.argv[1:])


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def mutter(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def text(words: str) -> Json:
    return {"content": [{"type": "text", "text": words}]}


def call(id_: Any, name: str, arguments: Json) -> Json | None:
    match name:
        case "exit":
            mutter("about to fail\npassword=hunter2\nlast words")
            sys.exit(arguments.get("code", 7))
        case "abort":
            os.kill(os.getpid(), signal.SIGABRT)
        case "environment":
            return text(json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd())}))
        case "giant":
            return text("x" * arguments["characters"])
        case "garbled":
            write('{"jsonrpc": "2.0", "id": NaN}\n')
            return None
        case "nonsense":
            write('{"jsonrpc": "2.0", "id": {}, "result": {}}\n')
            return None
        case "json_logs":
            write('{"level": 50, "msg": "as pino writes it", "error": "none"}\n')
            write('{"jsonrpc": "2.0", "method": "notifications/message", "params": []}\n')
            return text("logged")
        case "unfinished":
            # The answer, and the end, without a line end between them.
            write(json.dumps({"jsonrpc": "2.0", "id": id_, "result": text("unfinished")}))
            sys.exit(0)
        case "chatty":
            for number in range(arguments["lines"]):
                mutter(f"line {number}\n")
        case "close_output":
            os.close(1)
            time.sleep(60)
        case "pid":
            return text(str(os.getpid()))
    return text(arguments.get("text", "done"))


def answer(message: Json) -> Json | None:
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "oddity", "version": "1"},
            }
        case "tools/list":
            return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            params = message["params"]
            return call(message["id"], params["name"], params.get("arguments", {}))
        case _:
            return {}


def child() -> None:
    """Somebody whom the server started, and who does not care for signals or input either."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    started = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE)
    assert started.stdout is not None
    started.stdout.readline()
    mutter(f"child {started.pid}\n")


def main() -> None:
    if "banner" in ODDITIES:
        write("Welcome!\n\n  * Serving on stdio\n{'not': 'json'}\n")
    if "fails" in ODDITIES:
        mutter("cannot find my configuration\n")
        sys.exit(3)
    if "stubborn" in ODDITIES:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "parent" in ODDITIES:
        child()
    if "needy" in ODDITIES:
        write('{"jsonrpc": "2.0", "id": "anybody?", "method": "ping"}\n')
        if json.loads(sys.stdin.readline()) != {"jsonrpc": "2.0", "id": "anybody?", "result": {}}:
            sys.exit(3)
        Path("comforted").touch()
    if "ignores_input" in ODDITIES:
        mutter("ready\n")
        time.sleep(60)
    for line in sys.stdin:
        message = json.loads(line)
        result = answer(message) if "method" in message and "id" in message else None
        if result is not None:
            write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    if "stubborn" in ODDITIES or "lingers" in ODDITIES:
        mutter("input closed\n")
        time.sleep(60)


if __name__ == "__main__":
    main()
