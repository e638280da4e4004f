"""One HTML file with a paper's claims and figures, which needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from argosy.papers.charts import Chart, Figure, HeatMap
from argosy.papers.claims import Claim
from argosy.papers.paper import Paper, Scale
from argosy.report.figures import draw_chart, draw_heat_map, heat_key, key
from argosy.report.tables import Column, Table, Unit
from argosy.version import __version__

STYLE: Final = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2126; --soft: #5c6670; --faint: #e4e7ea;
  --good: #1a7f37; --bad: #b42318; --cold: #fff; --heat: #0b5394;
  --hot-ink: #fff; --strike: #ff5a4d;
  --c0: #0072b2; --c1: #d55e00; --c2: #00845f; --c3: #a2409b; --c4: #9a7400; --c5: #5b6b7a; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181c; --ink: #e6e9ec; --soft: #9aa5b0; --faint: #2b3238;
    --good: #56c271; --bad: #ff8478; --cold: #1b2127; --heat: #6cb6f0;
    --hot-ink: #0c1014; --strike: #b3261e;
    --c0: #5ab4f0; --c1: #ff9a52; --c2: #3fcf9f; --c3: #e08ad9; --c4: #e0b93c; --c5: #b4c0cb; } }
body { margin: 0 auto; max-width: 1240px; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .25rem; }
p { margin: .25rem 0; max-width: 75ch; } .soft, figcaption { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin-top: 1rem; font-size: .9rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .7rem .4rem 0;
  border-bottom: 1px solid var(--faint); }
td.holds { color: var(--good); white-space: nowrap; font-weight: 600; }
td.fails { color: var(--bad); white-space: nowrap; font-weight: 600; }
td small { display: block; color: var(--soft); }
.panels { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(360px, 100%), 1fr)); }
.panels.fill { grid-template-columns: repeat(auto-fit, minmax(min(360px, 100%), 1fr)); }
.panels.fill svg { max-width: 620px; } td.number, th.number { white-space: nowrap; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: .5rem 0 .75rem; font-size: .9rem; }
.key { display: inline-flex; align-items: center; gap: .4rem; }
.key svg { width: 32px; height: 14px; } .key svg.scale { width: 64px; height: 12px; }
figure { margin: 0; } .panels svg { width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); }
svg text.title { font-size: 13px; font-weight: 600; }
svg text.tick { fill: var(--soft); }
svg text.rule-label { font-size: 10px; fill: var(--line, var(--soft)); paint-order: stroke;
  stroke: var(--paper); stroke-width: 3px; }
svg text.hot-number { fill: var(--hot-ink); } svg text.cool-number { fill: var(--ink); }
.grid { stroke: var(--faint); } .axis { stroke: var(--soft); }
.rule { stroke: var(--line, var(--soft)); stroke-dasharray: 2 3; }
.line { fill: none; stroke: var(--line); stroke-width: 1.8; stroke-linejoin: round; }
.dashed { stroke-dasharray: 5 4; } .error { fill: none; stroke: var(--line); stroke-width: 1.2; }
.mark { fill: var(--line); stroke: var(--line); } .mark.hollow { fill: var(--paper); }
.heat { fill: var(--heat); } .cold, .none { fill: var(--cold); } .none { stroke: var(--faint); }
.note { border-left: 3px solid var(--c1); padding-left: .7rem; }
svg.wide { width: 100%; min-width: 640px; height: auto; } code { overflow-wrap: anywhere; }
@media print { body { max-width: none; padding: 0; font-size: 12px; } .scroll { overflow: visible; }
  svg.wide { min-width: 0; } figure, svg, tr { break-inside: avoid; } h2 { break-after: avoid; } }
.strike { stroke: var(--strike); stroke-width: 1.6; }
"""


def page(
    paper: Paper,
    scale: Scale,
    claims: Sequence[Claim],
    figures: Sequence[Figure],
    notes: Sequence[str],
) -> str:
    """The whole document. It refers to no other resource, so it looks the same wherever it is
    opened."""
    body = [
        f"<h1>{escape(paper.title)}</h1>",
        f'<p class="soft">{escape(paper.reference)}</p>',
        f"<p>Reproduced by Argosy {escape(__version__)} at scale <b>{escape(scale.name)}</b>: "
        f"{escape(scale.about)}.</p>",
        *(f'<p class="soft">Not here: {escape(text)}.</p>' for text in notes),
        *_claims(claims),
        *(html_figure(figure) for figure in figures),
    ]
    return document(f"{paper.name}: figures and claims", body)


def document(title: str, body: Sequence[str]) -> str:
    """An HTML file in the style of all reports."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        "<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def html_table(table: Table) -> str:
    heads = "".join(f"<th{_kind(column)}>{escape(column.title)}</th>" for column in table.columns)
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td{_kind(column)}>{escape(column.text(value))}</td>"
            for column, value in zip(table.columns, row, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    inner = f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="scroll"><table>{inner}</table></div>'


def _kind(column: Column) -> str:
    """Numbers are not broken over lines."""
    return "" if column.unit is Unit.TEXT else ' class="number"'


def _claims(claims: Sequence[Claim]) -> list[str]:
    if not claims:
        return []
    held = sum(claim.holds for claim in claims)
    rows = "".join(
        f"<tr><td>{escape(claim.figure)}</td><td>{escape(claim.paper)}{_small(claim.setup)}</td>"
        f"<td>{escape(claim.here)}{_small(claim.note)}</td><td>{escape(claim.tolerance)}</td>"
        f'<td class="{"holds" if claim.holds else "fails"}">'
        f"{'holds' if claim.holds else 'does not hold'}</td></tr>"
        for claim in claims
    )
    return [
        f"<h2>Claims: {held} of {len(claims)} hold</h2>",
        '<div class="scroll"><table><thead><tr><th>Figure</th><th>The paper says</th><th>Here</th>'
        f"<th>Tolerance</th><th></th></tr></thead><tbody>{rows}</tbody></table></div>",
    ]


def _small(text: str) -> str:
    return f"<small>{escape(text)}</small>" if text else ""


def html_figure(figure: Figure) -> str:
    drawn = []
    keys: dict[str, None] = {}
    for place, panel in enumerate(figure.panels):
        name = f"f{figure.number}-{place}"
        match panel:
            case Chart():
                drawn.append(draw_chart(panel, name))
                keys |= dict.fromkeys(key(line) for line in panel.lines if line.marks)
            case HeatMap():
                drawn.append(draw_heat_map(panel, name))
                keys[heat_key(panel)] = None
    note = f'<p class="soft">{escape(figure.note)}</p>' if figure.note else ""
    return (
        f'<figure id="figure-{escape(figure.number)}">'
        f"<h2>Figure {escape(figure.number)}: {escape(figure.title)}</h2>"
        f"<figcaption><p>{escape(figure.caption)}</p>{note}</figcaption>"
        f'<div class="legend">{"".join(keys)}</div><div class="panels">{"".join(drawn)}</div></figure>'
    )
