"""Puts everything that the tests need under `.tools/`: virtualenvs, Node packages, Node itself, two helms, Redis.

Standard library only, because it runs before anything is installed. What is there and was made from the same
lock files is left alone, so a second run takes no time. A failing installer ends it, with what it said.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "tests" / "peers"
TOOLS = ROOT / ".tools"
NODE_WANTED = 22
PYTHON = f"{platform.python_implementation()} {platform.python_version()} {sys.executable}"


class Failed(Exception):
    """An installer did not do its work; the text is for the terminal."""


def run(*command: str | Path, cwd: Path = ROOT, **env: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        words = " ".join(str(part) for part in command)
        raise Failed(f"$ {words}\n{done.stdout}\nended with {done.returncode}")
    return done.stdout


def once(target: Path, inputs: Iterable[Path | str], make: Callable[[], None]) -> None:
    """Make the target anew unless it stands as it was made from these very inputs."""
    digest = hashlib.sha256()
    for item in inputs:
        digest.update(item.read_bytes() if isinstance(item, Path) else item.encode())
        digest.update(b"\0")
    stamp = TOOLS / ".stamps" / target.relative_to(TOOLS).as_posix().replace("/", "+")
    if target.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    sys.stdout.write(f"installing {target.relative_to(ROOT)}\n")  # one write: several threads say so at once
    sys.stdout.flush()
    stamp.unlink(missing_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    make()
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(digest.hexdigest())


def bootstrap() -> None:
    """A virtualenv with pip and uv: pip reads everybody's configuration, uv is fast."""
    target, lock = TOOLS / "bootstrap", PEERS / "bootstrap.lock"

    def make() -> None:
        run(sys.executable, "-m", "venv", target)
        run(target / "bin/python", "-m", "pip", "install", "--quiet", "--require-hashes", "-r", lock)

    once(target, [lock, PYTHON], make)


def environment(name: str, lock: Path) -> None:
    target, python = TOOLS / name, TOOLS / name / "bin" / "python"

    def make() -> None:
        run(TOOLS / "bootstrap/bin/uv", "venv", "--quiet", "--python", sys.executable, target)
        try:
            run(
                *(TOOLS / "bootstrap/bin/uv", "pip", "install", "--quiet", "--python", python),
                *("--require-hashes", "-r", lock),
            )
        except Failed as first:
            # uv does not read pip's configuration: where that names a mirror, only pip gets through.
            print(f"{first}\ntrying pip instead", flush=True)
            run(
                *(TOOLS / "bootstrap/bin/python", "-m", "pip", "--python", python, "install", "--quiet"),
                *("--require-hashes", "-r", lock),
            )

    once(target, [lock, PYTHON], make)


def project() -> None:
    """The gateway itself, editable, in the virtualenv of the tests."""
    python = TOOLS / "venv" / "bin" / "python"
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    done = TOOLS / "venv" / ".project"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if done.exists() and done.read_text() == wanted and any(Path(site).glob("mcp_holdfast-*.dist-info")):
        return
    print("installing the project", flush=True)
    pip = (TOOLS / "bootstrap/bin/python", "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--editable", ROOT)
    done.write_text(wanted)


def node_packages(name: str, folder: str | None = None) -> None:
    source, target = PEERS / "node" / name, TOOLS / (folder or f"node/{name}")
    inputs = [path for path in sorted(source.iterdir()) if path.is_file()]

    def make() -> None:
        target.mkdir(parents=True)
        for path in inputs:
            shutil.copy(path, target)
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=target)

    once(target, inputs, make)


def node() -> None:
    """`.tools/bin/node`: the machine's own if it is new enough, else one from npm."""
    own = shutil.which("node")
    if own is None or shutil.which("npm") is None:
        raise Failed("node and npm are needed: the peers of the tests are Node programs too")
    major = int(run(own, "-p", "process.versions.node").partition(".")[0])
    if major < NODE_WANTED:
        node_packages("node-22")
        found = sorted((TOOLS / "node/node-22/node_modules").glob("node-*/bin/node"))
        if not found:
            raise Failed(f"node {major} is too old, and npm has no node {NODE_WANTED} for this machine")
        own = str(found[0])
    link = TOOLS / "bin" / "node"
    link.parent.mkdir(exist_ok=True)
    if not link.exists() or link.readlink() != Path(own):
        link.unlink(missing_ok=True)
        link.symlink_to(own)


def unpack(archive: Path, member: Callable[[str], bool], target: Path) -> None:
    # Python's own, because a fresh machine need not have unzip.
    with zipfile.ZipFile(archive) as opened:
        (name,) = (name for name in opened.namelist() if member(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        with opened.open(name) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink)
    target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def helm3() -> None:
    target, lock = TOOLS / "helm3", PEERS / "helm3.lock"

    def make() -> None:
        with tempfile.TemporaryDirectory() as scratch:
            pip = (TOOLS / "bootstrap/bin/python", "-m", "pip")
            run(*pip, "download", "--quiet", "--no-deps", "--require-hashes", "-r", lock, "-d", scratch)
            (wheel,) = Path(scratch).glob("*.whl")
            unpack(wheel, lambda name: name.endswith(".data/scripts/helm"), target / "helm")

    once(target, [lock], make)


def helm4() -> None:
    target, lock = TOOLS / "helm4", PEERS / "node/helm4/package-lock.json"

    def make() -> None:
        with tempfile.TemporaryDirectory() as scratch:
            for path in (PEERS / "node/helm4").iterdir():
                shutil.copy(path, scratch)
            run(
                "npm",
                "ci",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
                cwd=Path(scratch),
            )
            (layer,) = Path(scratch).glob("node_modules/@aws-cdk/*/lib/layer.zip")
            unpack(layer, lambda name: name == "helm/helm", target / "helm")

    once(target, [lock], make)


def redis() -> None:
    """`.tools/bin/redis-server`: the machine's own, or Debian's: installed as root, else only unpacked here."""
    link = TOOLS / "bin" / "redis-server"
    if link.exists() and shutil.which("redis-server") is None:
        return  # unpacked before
    if shutil.which("redis-server") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing redis-server", flush=True)
        try:
            apt_get("install", "--yes", "--no-install-recommends", "redis-server")
        except Failed as problem:
            print(f"{problem}\nunpacking it instead", flush=True)
    own = shutil.which("redis-server")
    link.parent.mkdir(exist_ok=True)
    if own is None:
        unpacked_redis(link)
    elif not link.is_symlink() or link.readlink() != Path(own):
        link.unlink(missing_ok=True)
        link.symlink_to(own)
    run(link, "--version")


def apt_get(*words: str, cwd: Path = ROOT) -> str:
    # RUNLEVEL=1: the server is to be there, not to run.
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    try:
        return run("apt-get", *words, cwd=cwd, **quiet)
    except Failed:
        if os.geteuid() != 0:
            raise
        run("apt-get", "update", **quiet)  # a fresh machine knows of no package yet
        return run("apt-get", *words, cwd=cwd, **quiet)


def unpacked_redis(link: Path) -> None:
    """What is missing of it and of its libraries, unpacked side by side; a script puts them together."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise Failed(
            "redis-server is needed, and there is no apt-get to fetch it with: install Redis 6.2 or later"
        )
    target = TOOLS / "redis"
    plan = apt_get("install", "--simulate", "--no-install-recommends", "redis-server")
    missing = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        apt_get("download", *missing, cwd=Path(scratch))
        for package in sorted(Path(scratch).glob("*.deb")):
            run("dpkg", "-x", package, target)
    folders = sorted({str(library.parent) for library in target.rglob("lib*.so*")})
    binary = target / "usr" / "bin" / "redis-server"
    if not binary.exists():
        raise Failed(f"redis-server was not in {', '.join(missing)}")
    link.unlink(missing_ok=True)
    link.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{":".join(folders)}" exec "{binary}" "$@"\n')
    link.chmod(0o755)


def everything() -> None:
    bootstrap()
    node()
    redis()
    packages = sorted(
        path.name for path in (PEERS / "node").iterdir() if path.name not in {"node-22", "helm4"}
    )
    releases = sorted(PEERS.glob("py-*.lock"))
    with ThreadPoolExecutor(4) as pool:
        work = [
            pool.submit(environment, "venv", PEERS / "dev.lock"),
            *(pool.submit(environment, lock.stem, lock) for lock in releases),
            *(pool.submit(node_packages, name) for name in packages),
            pool.submit(helm3),
            pool.submit(helm4),
        ]
        for item in work:
            item.result()
    project()


def refuse(problem: str) -> NoReturn:
    print(f"\ntests/run cannot install what the tests need:\n{problem}", file=sys.stderr)
    sys.exit(1)


def main() -> None:
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at once: the second waits and finds everything there
        try:
            everything()
        except (Failed, OSError, zipfile.BadZipFile, ValueError) as problem:
            refuse(str(problem))


if __name__ == "__main__":
    main()
