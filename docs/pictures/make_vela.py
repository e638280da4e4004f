"""Draws vela-5.svg and vela-table-3.svg from finished results of `argosy paper vela`:

    python docs/pictures/make_vela.py runs/paper-vela-quick quick

A picture asks for nothing from elsewhere, and follows the reader's light or dark theme.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Final

from argosy.papers.charts import Chart, Figure
from argosy.papers.experiment import Findings, Store, run_points
from argosy.papers.vela import VELA
from argosy.report.figures import HEIGHT, WIDTH, draw_chart, shape
from argosy.report.html import STYLE

PICTURES: Final = {"5": "vela-5.svg", "table 3": "vela-table-3.svg"}
COLUMNS: Final = 2
ROW: Final = 18


def legend(chart: Chart, top: float) -> list[str]:
    parts = []
    for number, line in enumerate(chart.lines):
        x, y = 14 + (number % COLUMNS) * WIDTH, top + ROW * (number // COLUMNS)
        dashed = " dashed" if line.dashed else ""
        parts.append(
            f'<g style="--line:var(--c{line.colour})"><path class="line{dashed}" d="M{x} {y}h30"/>'
            f"{shape(line.colour, x + 15, y, hollow=line.dashed)}"
            f'<text x="{x + 38}" y="{y + 4}">{escape(line.label)}</text></g>'
        )
    return parts


def picture(figure: Figure) -> str:
    charts = [panel for panel in figure.panels if isinstance(panel, Chart)]
    rows = -(-len(charts) // COLUMNS)
    lines = -(-max(len(chart.lines) for chart in charts) // COLUMNS)
    width, height = COLUMNS * WIDTH, rows * HEIGHT + ROW * (lines + 1)
    parts = [f"<style>{STYLE}</style>", '<rect width="100%" height="100%" fill="var(--paper)"/>']
    for number, chart in enumerate(charts):
        x, y = (number % COLUMNS) * WIDTH, (number // COLUMNS) * HEIGHT
        placed = f'<svg x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}"'
        parts.append(draw_chart(chart, f"panel{number}").replace("<svg", placed, 1))
    parts += legend(charts[0], rows * HEIGHT + ROW)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(figure.title)}</title>{''.join(parts)}</svg>\n"
    )


def main() -> None:
    directory, scale = sys.argv[1:]
    points = VELA.plan(scale, list(PICTURES))
    store = Store(Path(directory))
    finished = [point for point in points if store.read(point) is not None]
    found = Findings(finished, run_points(finished, VELA.runner, store))
    for figure, name in PICTURES.items():
        drawn = VELA.draw(found, [figure])[0]
        Path(__file__).with_name(name).write_text(picture(drawn))


if __name__ == "__main__":
    main()
