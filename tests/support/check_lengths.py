"""Fails if a module or header has more than 600 lines: it has more than one responsibility by then."""

import subprocess
import sys
from pathlib import Path

LONGEST = 600
KINDS = ("*.py", "*.pyi", "*.hpp", "*.cpp")


def main() -> int:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *KINDS]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.splitlines()
    lengths = {
        name: len(Path(name).read_text("utf-8").splitlines())
        for name in names
        if Path(name).exists()
    }
    for name, length in sorted(lengths.items()):
        if length > LONGEST:
            print(f"{name}: {length} lines; expected at most {LONGEST}", file=sys.stderr)
    return int(max(lengths.values()) > LONGEST)


if __name__ == "__main__":
    sys.exit(main())
