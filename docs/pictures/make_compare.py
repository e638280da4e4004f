"""Draws compare.svg: what `argosy compare` prints on a terminal, as a picture.

    python docs/pictures/make_compare.py

The picture asks for no font or file from elsewhere: every row states its own width, so any monospaced
font lines up.
"""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parents[2]
PICTURE: Final = Path(__file__).with_name("compare.svg")
COMMAND: Final = (
    *("compare", "scenarios/demo.toml", "--seeds", "3"),
    *("--engine", "omega", "--engine", "murmuration", "--engine", "hawk", "--engine", "yaq-d"),
)
WIDTH: Final = 100

THEME: Final = TerminalTheme(
    background=(16, 24, 32),
    foreground=(214, 222, 230),
    normal=[(214, 222, 230)] * 8,
)
#: As rich's own frame, without its font from the network and without window buttons.
FRAME: Final = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
  <title>TITLE</title>
  <style>
    .{unique_id}-matrix {{
      font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
      font-size: {char_height}px;
      line-height: {line_height}px;
    }}
    {styles}
  </style>
  <defs>{lines}</defs>
  <rect width="{width}" height="{height}" rx="8" fill="#101820"/>
  <g transform="translate({terminal_x}, {terminal_y})">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
  </g>
</svg>
"""


def printed() -> str:
    """What the command prints on a terminal of `WIDTH` columns, with its bold headings."""
    reader, writer = pty.openpty()
    # A plain terminal would end lines with a carriage return as well; rich drops it.
    process = subprocess.Popen(
        [sys.executable, "-m", "argosy.cli", *COMMAND],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": str(WIDTH), "PYTHONUTF8": "1"},
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    chunks = []
    while True:
        try:
            chunk = os.read(reader, 65_536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(reader)
    _, complaint = process.communicate()
    if process.returncode:
        sys.exit(complaint.decode())
    return b"".join(chunks).decode().replace("\r\n", "\n")


def main() -> None:
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text(f"$ argosy {' '.join(COMMAND)}\n", style="dim"))
    console.print(Text.from_ansi(printed()))
    frame = FRAME.replace("TITLE", f"What argosy {' '.join(COMMAND)} prints")
    svg = console.export_svg(theme=THEME, code_format=frame, unique_id="argosy")
    PICTURE.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", "utf-8")
    print(f"drew {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
