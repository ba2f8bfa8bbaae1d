"""Grafana's JSON of a dashboard, from what a person wants to say of it: rows of panels, and each panel's queries.

The model is that of Grafana 9 to 12 (schema version 39). There is no Grafana here to read it: `tests/dashboards` holds
what it needs of it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

SCHEMA_VERSION: Final = 39  # of Grafana 10.4; later ones migrate it
SELECTOR: Final = 'job=~"$job",instance=~"$instance"'  # in place of SEL

_WIDTH, _HEIGHT, _COLUMNS = 8, 8, 24
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL, with SEL for the selector of job and instance; the legend has labels as `{{label}}`."""

    expr: str
    legend: str = ""

    @property
    def text(self) -> str:
        return " ".join(self.expr.replace("SEL", SELECTOR).split())


@dataclass(frozen=True, slots=True)
class Panel:
    """`unit` is one of Grafana's. `words` are shown in place of numbers, and then steps are drawn.

    A `table` shows one moment: the columns are the labels of its one query, and the value under the panel's title.
    """

    title: str
    about: str
    unit: str
    queries: tuple[Query, ...]
    stacked: bool = False
    table: bool = False
    words: Mapping[int, str] | None = None


class Figure(NamedTuple):
    """A number that the reader of a board types in, as `$name` in its queries."""

    name: str
    label: str
    value: str  # until then


@dataclass(frozen=True, slots=True)
class Board:
    """`metric` is one that every process has that the board is about: its jobs and instances are to choose from."""

    uid: str
    title: str
    about: str
    metric: str
    rows: Mapping[str, tuple[Panel, ...]]
    figures: tuple[Figure, ...] = ()

    def panels(self) -> Iterator[Panel]:
        for panels in self.rows.values():
            yield from panels


def dashboard_json(board: Board) -> str:
    """The file for Grafana."""
    return json.dumps(_dashboard(board), indent=1) + "\n"


def _dashboard(board: Board) -> Object:
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.about,
        "tags": ["topodns", "dns"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": _variables(board)},
        "panels": list(_placed(board)),
    }


def _variables(board: Board) -> list[Object]:
    metric = board.metric
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1}
    return [
        {**source, "current": {}, "hide": 0, "includeAll": False, "multi": False, "options": [], "regex": ""},
        _choice("job", "Job", f"label_values({metric}, job)"),
        _choice("instance", "Instance", f'label_values({metric}{{job=~"$job"}}, instance)'),
        *map(_typed, board.figures),
    ]


def _typed(figure: Figure) -> Object:
    value = {"text": figure.value, "value": figure.value}
    return {
        "name": figure.name,
        "label": figure.label,
        "type": "textbox",
        "query": figure.value,
        "current": {"selected": True, **value},
        "options": [{"selected": True, **value}],
        "hide": 0,
    }


def _choice(name: str, label: str, definition: str) -> Object:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "definition": definition,
        "query": {"query": definition, "refId": name},
        "refresh": 2,  # with the time range, since Pods come and go
        "sort": 1,
        "includeAll": True,
        "allValue": ".+",
        "multi": True,
        "current": {"text": ["All"], "value": ["$__all"]},
        "hide": 0,
        "options": [],
        "regex": "",
    }


def _placed(board: Board) -> Iterator[Object]:
    number, y = 1, 0
    for title, panels in board.rows.items():
        place = {"h": 1, "w": _COLUMNS, "x": 0, "y": y}
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}
        number, y = number + 1, y + 1
        for at, panel in enumerate(panels):
            row, column = divmod(at, _COLUMNS // _WIDTH)
            place = {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": y + row * _HEIGHT}
            yield {"id": number, "gridPos": place, **_panel(panel)}
            number += 1
        y += -(-len(panels) // (_COLUMNS // _WIDTH)) * _HEIGHT


def _panel(panel: Panel) -> Object:
    return {
        "type": "table" if panel.table else "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "targets": [_target(panel, at, query) for at, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        **(_AS_TABLE if panel.table else {"options": _OPTIONS}),
    }


_OPTIONS: Final[Object] = {
    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
    "tooltip": {"mode": "multi", "sort": "desc"},
}
_AS_TABLE: Final[Object] = {
    "options": {"showHeader": True, "sortBy": [{"displayName": "Value", "desc": True}]},
    "transformations": [{"id": "organize", "options": {"excludeByName": {"Time": True}}}],
}


def _target(panel: Panel, at: int, query: Query) -> Object:
    how: Object = {"format": "table", "instant": True} if panel.table else {"format": "time_series", "range": True}
    return {
        "refId": chr(ord("A") + at),
        "datasource": _SOURCE,
        "expr": query.text,
        "legendFormat": query.legend,
        "editorMode": "code",
        **how,
    }


def _defaults(panel: Panel) -> Object:
    mappings: list[Object] = []
    if panel.words is not None:
        texts = {str(value): {"text": text, "index": at} for at, (value, text) in enumerate(panel.words.items())}
        mappings = [{"type": "value", "options": texts}]
    bounds: Object = {"max": 1} if panel.words is not None or panel.unit == "percentunit" else {}
    custom = {
        "drawStyle": "line",
        "lineInterpolation": "stepAfter" if panel.words is not None else "linear",
        "fillOpacity": 60 if panel.stacked else 10,
        "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        "showPoints": "never",
        "spanNulls": False,
    }
    return {"unit": panel.unit, "min": 0, **bounds, "mappings": mappings, **({} if panel.table else {"custom": custom})}
