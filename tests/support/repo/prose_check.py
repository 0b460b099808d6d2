"""Keeps the project's English plain: measures Markdown, docstrings and comments by folder, against limits that only go down.

`make check` runs it (`python -m tests.support.repo.prose_check`), and so does a unit test. With `--update` it rewrites `prose_limits.txt`; otherwise it
writes nothing. The limits are a guard, not a verdict: a short sentence can still be a riddle.

A folder fails above its limit. It also fails well below its limit, because the limit must follow an improvement: `--update` lowers limits and
never raises one. A folder without a line has the limits of the line `*`. A renamed folder keeps its line: rename it in the table.

Also checked: references to documents that the repository lacks, table cells that are too wide, and subjects of the commits of a change.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
LIMITS: Final = Path(__file__).with_name("prose_limits.txt")
WORDS_MAX: Final = 25
"""Of a sentence; a longer one is `long`."""
WORDS_MIN: Final = 4
"""Of a sentence; a shorter piece is a heading or a name."""
CELL_CHARACTERS_MAX: Final = 200
SUBJECT_CHARACTERS_MAX: Final = 72
KINDS: Final = ("md", "doc", "comment")
MEASURES: Final = (
    *(f"{kind}.{what}" for kind in KINDS for what in ("long", "riddles")),
    "banned",
    "references",
    "cells",
)
"""Columns of the table: percent of long sentences and riddles per 1,000 words by kind, then counts."""
ROOM: Final = {"long": 3.0, "riddles": 1.0}
"""Distance below a limit at which the limit has to be lowered, at least; for counts and larger limits see `_is_well_below`."""
SHOWN: Final = 4
"""Places that an error lists."""
UNKNOWN_DOCUMENTS: Final = ("SEMANTICS", "DESIGN", "LAYOUT", "ANCHORS")
"""Names of documents that are not in the repository."""

INSTEAD: Final = {
    r"amid": "during",
    r"anew": "again; made anew: recreated",
    r"beside": "next to, concurrently",
    r"(?:is|are|was|were|be|been|not) told|told of": "reported, returned",
    r"(?:is|are|was|were|be|been) heard|heard of|heard from": "received",
    r"a look|looks? at|looked at": "check, read",
    r"stands? still|stood still": "stuck, stopped",
    r"lets? go|let go": "released",
    r"mend(?:s|ed|ing)?": "fix",
    r"meanwhile": "say when",
    r"of (?:its|their) own": "own",
    r"nobody|somebody|whoever": "name the subject",
    r"whatever": "name the thing",
}
"""Banned words, with the word to write instead."""
BANNED: Final = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b", re.IGNORECASE)
RIDDLES: Final = re.compile(
    rf"\b(?:{'|'.join(INSTEAD)}|likewise|thereof|hitherto|beforehand|else|what for|(?:is|are) asked|looks? of|(?:has|have|had) come|"
    r"th(?:at|ose) of|is kept|not yet|by itself|one of them|stands? aside|(?:is|are) let|all the same|no sooner|as often as|in want of|"
    r"(?:is|are) wanted|comes? to its end|at rest|is taken for|takes? it for|such a|what (?:is|was)|(?:of|else) what|of which none)\b",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r'(?P<long>"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\')|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(?P<comment>#[^\n]*)',
    re.DOTALL,
)
_NO_PROSE = re.compile(r"#\s*(?:noqa|type:|pragma|mypy:|ruff:|!)")
_FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")
_ADDRESS = re.compile(r"https?://\S+")
_BREAKS = (
    # A full stop; a blank line; an item, cell, heading or quotation.
    r"(?<=[.!?])[ \n]+(?=[A-Z(\"'`*])|\n[ \t]*\n|\n[ \t]*(?:[-*|>]|#+|\d+\.)[ \t]+|\|"
)
_BREAK = re.compile(_BREAKS)
# In docstrings also an entry such as `name: meaning` under "Args:".
_BREAK_OF_DOC = re.compile(rf"{_BREAKS}|\n[ \t]+(?=\*{{0,2}}\w+: )")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_NUMBERED = re.compile(rf"\b(?:{'|'.join(UNKNOWN_DOCUMENTS)}) \d+")
_NAMED = re.compile(rf"\b(?:{'|'.join(UNKNOWN_DOCUMENTS)})\b|\b[Ii]ssues? \d{{1,2}}\b|\bfound in review\b")
_PAGE = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.(?:md|json)\b")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and its place."""

    path: str
    line: int
    text: str
    words: int
    riddles: int


@dataclass(slots=True)
class Folder:
    """Everything that was found in a folder.

    Attributes:
        sentences: Sentences by kind.
        places: Places by count measure (`banned`, `references`, `cells`), each with its reason.
    """

    sentences: dict[str, list[Sentence]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    places: dict[str, list[str]] = field(default_factory=lambda: {"banned": [], "references": [], "cells": []})

    def figures(self) -> dict[str, float]:
        """Returns the value of each measure."""
        found: dict[str, float] = {}
        for kind, sentences in self.sentences.items():
            words = sum(each.words for each in sentences)
            long = sum(each.words > WORDS_MAX for each in sentences)
            found[f"{kind}.long"] = _rounded(100 * long, len(sentences))
            found[f"{kind}.riddles"] = _rounded(1_000 * sum(each.riddles for each in sentences), words)
        return found | {measure: float(len(places)) for measure, places in self.places.items()}

    def hardest(self, measure: str) -> list[str]:
        """Returns the places to begin with."""
        kind, _, what = measure.partition(".")
        if kind not in KINDS:
            return self.places[measure]
        if what == "long":
            ordered = sorted(self.sentences[kind], key=lambda each: -each.words)
            return [
                f"{each.path}:{each.line}: {each.words} words: {each.text}"
                for each in ordered
                if each.words > WORDS_MAX
            ]
        ordered = sorted(self.sentences[kind], key=lambda each: -each.riddles)
        return [
            f"{each.path}:{each.line}: {', '.join(RIDDLES.findall(each.text))}: {each.text}"
            for each in ordered
            if each.riddles
        ]


def _rounded(part: float, whole: int) -> float:
    # Upwards: a limit of one digit must not lie below the figure that it was made from.
    return -(-part * 10 // whole) / 10 if whole else 0.0


def sentences_of(text: str, kind: str = "md") -> Iterator[tuple[int, str]]:
    """Yields line, from 0, and text of each sentence; code counts as one word."""
    # Replacements keep the line breaks, so that the line can be counted afterwards.
    text = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = _ADDRESS.sub("link", _LINK.sub(r"\1", _CODE.sub("code", text)))
    start = line = counted = 0
    for match in [*(_BREAK_OF_DOC if kind == "doc" else _BREAK).finditer(text), None]:
        end = match.start() if match else len(text)
        piece = " ".join(text[start:end].split())
        if len(_WORD.findall(piece)) >= WORDS_MIN:
            begin = end - len(text[start:end].lstrip())
            line, counted = line + text.count("\n", counted, begin), begin
            yield line, piece
        start = match.end() if match else end


def prose_of_python(source: str) -> Iterator[tuple[str, int, str]]:
    """Yields kind, line and text of each docstring and of each block of comments."""
    starts = [0, *(match.end() for match in re.finditer("\n", source))]
    block: list[str] = []
    first = last = -1
    for match in _TOKEN.finditer(source):
        if match["comment"] and not _NO_PROSE.match(match[0]):
            line = bisect(starts, match.start())
            is_alone = not source[starts[line - 1] : match.start()].strip()
            if block and not (is_alone and line == last + 1):
                yield "comment", first, "\n".join(block)
                block = []
            first = first if block else line
            last = line if is_alone else -1
            block.append(match[0].lstrip("# "))
        elif match["long"] and _is_statement(source, match.start(), match.end()):
            yield "doc", bisect(starts, match.start()), match[0][3:-3]
    if block:
        yield "comment", first, "\n".join(block)


def _is_statement(source: str, start: int, end: int) -> bool:
    line = source.rfind("\n", 0, start) + 1
    if source[line:start].strip() not in {"", "r"}:
        return False
    rest = source[end : source.find("\n", end) if source.find("\n", end) >= 0 else len(source)].strip()
    return rest[:1] in {"", "#"} and source[:line].rstrip()[-1:] not in {"(", "[", "{", ",", "=", "+"}


def folder_of(path: str) -> str:
    """Returns the folder that a file counts to: two levels, or three in folders with many parts."""
    parts = path.split("/")[:-1]
    depth = 3 if parts[:2] in (["shared", "tidegate_core"], ["tests", "unit"], ["docs", "internals"]) else 2
    return "/".join(parts[:depth]) or "."


def measured(root: Path, paths: Iterable[str]) -> dict[str, Folder]:
    """Reads the files and returns the sentences and places of each folder."""
    known = {*paths}
    folders: defaultdict[str, Folder] = defaultdict(Folder)
    for path in sorted(known):
        if not path.endswith((".md", ".py", ".yaml", ".yml", ".tpl", "Makefile", "Containerfile")):
            continue
        source = (root / path).read_text(encoding="utf-8", errors="replace")
        folder = folders[folder_of(path)]
        if path.endswith(".md"):
            prose = [("md", 1, source)]
            folder.places["cells"] += _wide_cells(path, source)
        else:
            prose = [*prose_of_python(source)] if path.endswith(".py") else []
        for kind, line, text in prose:
            for offset, sentence in sentences_of(text, kind):
                found = Sentence(
                    path, line + offset, sentence, len(_WORD.findall(sentence)), len(RIDDLES.findall(sentence))
                )
                folder.sentences[kind].append(found)
                if found.riddles:
                    folder.places["banned"] += [_instead(found, word) for word in BANNED.findall(sentence)]
        folder.places["references"] += _missing(root, path, source, prose, known)
    return dict(folders)


def _instead(sentence: Sentence, word: str) -> str:
    instead = next(text for pattern, text in INSTEAD.items() if re.fullmatch(pattern, word, re.IGNORECASE))
    return f'{sentence.path}:{sentence.line}: "{word}"; write instead: {instead}'


def _wide_cells(path: str, source: str) -> Iterator[str]:
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("|") and len(line) > CELL_CHARACTERS_MAX:
            for cell in _CELL_EDGE.split(line.strip().strip("|")):
                if len(cell.strip()) > CELL_CHARACTERS_MAX:
                    yield f"{path}:{number}: a table cell has {len(cell.strip())} characters; at most {CELL_CHARACTERS_MAX}"


def _missing(
    root: Path, path: str, source: str, prose: Sequence[tuple[str, int, str]], known: set[str]
) -> Iterator[str]:
    """Yields each reference to a document that the repository does not have."""
    for match in _NUMBERED.finditer(source):
        yield f"{path}:{source.count(chr(10), 0, match.start()) + 1}: {match[0]} is not in the repository; state the rule itself"
    for _, line, text in prose:
        for match in _NAMED.finditer(_NUMBERED.sub("", text)):
            yield f"{path}:{line + text.count(chr(10), 0, match.start())}: {match[0]} is not in the repository; state the rule itself"
    targets = [(match.start(), match[0]) for match in _PAGE.finditer(source)]
    for start, target in targets:
        if target not in known:
            yield f"{path}:{source.count(chr(10), 0, start) + 1}: there is no {target}"
    if path.endswith(".md"):
        for match in _LINK.finditer(_CODE.sub("", _FENCE.sub("", source))):
            target = match[2].partition("#")[0]
            if (
                target
                and "://" not in target
                and not target.startswith("mailto:")
                and not (root / path).parent.joinpath(target).exists()
            ):
                yield f"{path}: the link ({match[2]}) leads to no file"


def read_limits(text: str) -> dict[str, dict[str, float]]:
    """Returns the limits by folder; `*` stands for all other folders."""
    limits = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            folder, *values = line.split()
            limits[folder] = {
                measure: float(value) for measure, value in zip(MEASURES, values, strict=True) if value != "-"
            }
    if missing := [measure for measure in MEASURES if measure not in limits.get("*", {})]:
        raise ValueError(f"{LIMITS.name}: the line * has no limit for {', '.join(missing)}")
    return limits


def lowered(limits: Mapping[str, Mapping[str, float]], folders: Mapping[str, Folder]) -> dict[str, dict[str, float]]:
    """Returns the limits after `--update`: the lower of limit and figure, unless the figure is within the limits of `*`."""
    common = limits["*"]
    kept: dict[str, dict[str, float]] = {"*": {**common}}
    for folder, own in limits.items():
        figures = folders[folder].figures() if folder in folders else {}
        left = {measure: min(limit, figures.get(measure, 0.0)) for measure, limit in own.items()}
        left = {measure: limit for measure, limit in left.items() if limit > common[measure]}
        if left and folder != "*":
            kept[folder] = left
    return kept


def rendered(limits: Mapping[str, Mapping[str, float]]) -> str:
    """Returns the table as text, a folder a line."""
    width = max(map(len, limits))
    columns = [max(len(measure), 5) for measure in MEASURES]
    lines = [
        "# Limits of tests/support/repo/prose_check.py. They only go down: make check says when, and --update lowers them.",
        "# In percent of sentences (long), per 1,000 words (riddles), or as counts. `-` is the limit of the line `*`.",
        "  ".join(
            ["# folder".ljust(width), *(name.rjust(column) for name, column in zip(MEASURES, columns, strict=True))]
        ),
    ]
    for folder in sorted(limits):
        cells = [f"{limits[folder][measure]:g}" if measure in limits[folder] else "-" for measure in MEASURES]
        lines.append(
            "  ".join([folder.ljust(width), *(cell.rjust(column) for cell, column in zip(cells, columns, strict=True))])
        )
    return "\n".join(lines) + "\n"


def faults(limits: Mapping[str, Mapping[str, float]], folders: Mapping[str, Folder]) -> Iterator[str]:
    """Yields a text for each figure above its limit, and for each limit that has to be lowered."""
    for name, folder in sorted(folders.items()):
        own = limits.get(name, {})
        for measure, figure in folder.figures().items():
            limit = own.get(measure, limits["*"][measure])
            if figure > limit:
                places = "".join(f"\n    {place[:240]}" for place in folder.hardest(measure)[:SHOWN])
                yield f"{name}: {measure} is {figure:g}, above its limit of {limit:g}; rewrite some of (--show {name} lists all):{places}"
            elif measure in own and _is_well_below(measure, max(figure, limits["*"][measure]), limit):
                yield f"{name}: {measure} is {figure:g}, well below its limit of {limit:g}; lower the limit with --update"
    for name in sorted(set(limits) - {"*", *folders}):
        yield f"{name}: has limits and no files; remove the line with --update, or rename it with the folder"


def _is_well_below(measure: str, figure: float, limit: float) -> bool:
    return limit - figure > max(ROOM.get(measure.partition(".")[2], 3.0), limit / 10)


def long_subjects(root: Path) -> list[str]:
    """Returns the commits of this change with too long a subject; none where the history does not say which ones these are."""
    for base in ("origin/main", "main"):
        fork = _git(root, "merge-base", "HEAD", base)
        if fork:
            log = _git(root, "log", "--no-merges", "--format=%h %s", f"{fork.strip()}..HEAD") or ""
            subjects = [line.partition(" ") for line in log.splitlines()]
            return [
                f"commit {commit}: its subject has {len(text)} characters; at most {SUBJECT_CHARACTERS_MAX}: {text}"
                for commit, _, text in subjects
                if len(text) > SUBJECT_CHARACTERS_MAX
            ]
    return []


def files(root: Path) -> list[str]:
    """Returns the paths of all files of the repository; of an unpacked archive, all that are not made by a build."""
    listing = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listing is not None:
        return [name for name in listing.split("\0") if name and (root / name).is_file()]
    made = {".venv", "build", "dist"}
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return [path.as_posix() for path in paths if not made & {*path.parts}]


def _git(root: Path, *arguments: str) -> str | None:
    """Returns the output of git, or None: there is no git, no repository, or no such commit."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if all figures are within their limits; otherwise 1, with a text for each fault."""
    parser = argparse.ArgumentParser(prog="prose_check", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="Lower limits to the figures; never raises one.")
    parser.add_argument("--show", metavar="FOLDER", help="List all places that count in a folder, and change nothing.")
    options = parser.parse_args(arguments)
    folders = measured(ROOT, files(ROOT))
    limits = read_limits(LIMITS.read_text(encoding="utf-8"))
    if options.show:
        for measure, figure in folders[options.show].figures().items():
            sys.stdout.write("\n".join([f"{measure}: {figure:g}", *folders[options.show].hardest(measure)]) + "\n")
        return 0
    if options.update:
        limits = lowered(limits, folders)
        LIMITS.write_text(rendered(limits), encoding="utf-8")
    found = [*faults(limits, folders), *long_subjects(ROOT)]
    for fault in found:
        sys.stderr.write(f"prose: {fault}\n")
    if not found:
        sys.stdout.write("Prose: within its limits\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
