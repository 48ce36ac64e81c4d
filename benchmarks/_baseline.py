"""Run the command line of any commit of this repository, and measure what a run costs.

    from _baseline import installed, run

    run("324b996", "fit", "data", "--out", "model").cpu_seconds

The first run of a commit installs it in a virtual environment of its own, in the folder that
TILP_BASELINES names (~/.cache/tilp-baselines if unset). Later runs use that environment.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
EXTRAS = "plot"


class Run(subprocess.CompletedProcess[str]):
    """A finished command line: exit code and output, CPU and wall seconds, peak memory in bytes."""

    cpu_seconds: float
    wall_seconds: float
    peak_memory: int


@dataclass(frozen=True)
class Version:
    """A version of tilp that can be run.

    Attributes:
        python: The interpreter of an environment with tilp's dependencies.
        source: The folder with the package, such as `src` of a worktree; None if tilp is installed
            in the environment.
    """

    python: Path
    source: Path | None = None

    def run(self, *args: str, cwd: Path | str | None = None, check: bool = True) -> Run:
        """Run `tilp ARGS` in the folder `cwd`; exit with its messages if it fails and `check`."""
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        if self.source is not None:
            environment["PYTHONPATH"] = str(self.source.resolve())
        command = [str(self.python.absolute()), "-m", "tilp", *args]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            begin = time.perf_counter()
            child = subprocess.Popen(command, cwd=cwd, env=environment, stdout=out, stderr=err)
            _, status, usage = os.wait4(child.pid, 0)
            wall_seconds = time.perf_counter() - begin
            child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            run = Run(command, child.returncode, out.read(), err.read())
        run.cpu_seconds = usage.ru_utime + usage.ru_stime
        run.wall_seconds = wall_seconds
        run.peak_memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        if check and run.returncode:
            sys.exit(f"{' '.join(command)} failed in {cwd or '.'}:\n{run.stdout}{run.stderr}")
        return run


def full_commit(commit: str) -> str:
    """Return the full name of a commit, branch or tag of this repository."""
    command = ["git", "-C", str(REPOSITORY), "rev-parse", "--verify", f"{commit}^{{commit}}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def installed(commit: str) -> Version:
    """Return a commit in an environment of its own; install it if that was not done yet."""
    commit = full_commit(commit)
    default = Path.home() / ".cache" / "tilp-baselines"
    folder = Path(os.environ.get("TILP_BASELINES", default)).resolve() / commit
    python = folder / "venv" / "bin" / "python"
    finished = folder / "installed"
    if not finished.exists():
        print(f"install {commit[:7]} in {folder}", file=sys.stderr, flush=True)
        source = folder / "source"
        source.mkdir(parents=True, exist_ok=True)
        archive = ["git", "-C", str(REPOSITORY), "archive", commit]
        tree = subprocess.run(archive, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=tree, check=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder / "venv")], check=True)
        wanted = f"{source}[{EXTRAS}]"
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", wanted], check=True)
        finished.touch()
    return Version(python)


def run(commit: str, *args: str, cwd: Path | str | None = None, check: bool = True) -> Run:
    """Run `tilp ARGS` of a commit."""
    return installed(commit).run(*args, cwd=cwd, check=check)
