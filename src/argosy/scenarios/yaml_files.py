"""Reads YAML with the line of every value (the extra `yaml`).

Only what JSON has too is accepted: keys are text, each once in its mapping, and nothing contains
itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from argosy.model.errors import ArgosyError, MissingExtra, excerpt
from argosy.workloads.tables import TablePath

if TYPE_CHECKING:
    import yaml  # type: ignore[import-untyped]

#: With aliases, a short file can stand for a document of any size.
_MOST_VALUES: Final = 1_000_000


def parse_yaml(
    text: str, file: str, form_error: type[ArgosyError], expected: str
) -> tuple[list[Any], dict[TablePath, int]]:
    """Every document of the text, and the line of every value, by its path in the list of them."""
    try:
        import yaml
    except ModuleNotFoundError:
        raise MissingExtra("a file in YAML", "yaml", "use TOML") from None
    walk = _Walk(file, form_error, expected)
    documents: list[Any] = []
    try:
        loader = yaml.SafeLoader(text)
        try:
            while loader.check_node():
                node = loader.get_node()
                walk.node(node, (len(documents),))
                documents.append(loader.construct_document(node))
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise _syntax(error, file, form_error, expected) from None
    except RecursionError:
        raise form_error("nested too deeply", file=file, expected=expected) from None
    except ValueError as error:
        # Dates that do not exist, and numbers with more digits than Python accepts.
        raise form_error(f"not readable as YAML: {error}", file=file, expected=expected) from None
    return documents, walk.places


def _syntax(
    error: yaml.YAMLError, file: str, form_error: type[ArgosyError], expected: str
) -> ArgosyError:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return form_error(
        f"not YAML: {what}" + (f" at column {mark.column + 1}" if mark is not None else ""),
        file=file,
        line=mark.line + 1 if mark is not None else None,
        expected=expected,
    )


class _Walk:
    def __init__(self, file: str, form_error: type[ArgosyError], expected: str) -> None:
        self.places: dict[TablePath, int] = {}
        self._file = file
        self._form_error = form_error
        self._expected = expected
        self._inside: set[int] = set()
        self._values = 0

    def node(self, node: Any, path: TablePath, line: int | None = None) -> None:
        import yaml

        line = node.start_mark.line + 1 if line is None else line
        self.places[path] = line
        self._values += 1
        if self._values > _MOST_VALUES or id(node) in self._inside:
            self._refuse("aliases that lead to themselves, or to too many values", line)
        self._inside.add(id(node))
        if isinstance(node, yaml.MappingNode):
            self._mapping(node, path)
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.node(item, (*path, index))
        self._inside.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: TablePath) -> None:
        seen = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.tag != "tag:yaml.org,2002:str":
                text = excerpt(str(key.value)) if isinstance(key.value, str) else "a collection"
                self._refuse(f"key {text} is not text", line, "quotation marks around it")
            if key.value in seen:
                self._refuse(f"key {excerpt(key.value)} twice in one mapping", line)
            seen.add(key.value)
            self.node(value, (*path, key.value), line)

    def _refuse(self, problem: str, line: int, expected: str | None = None) -> None:
        raise self._form_error(
            problem, file=self._file, line=line, expected=expected or self._expected
        )
