"""Tables of a report, read back from HTML and from Markdown."""

import html.parser
import re


class Tables(html.parser.HTMLParser):
    """The tables of a page, as texts; and whatever else it says."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.tags, self.said = [], set(), []
        self._cell = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.tables[-1][-1].append("".join(self._cell))
            self._cell = None

    def handle_data(self, data):
        (self.said if self._cell is None else self._cell).append(data)


def markdown_tables(text):
    tables, row_before = [], False
    for line in text.splitlines():
        is_row = line.startswith("| ")
        if is_row:
            cells = [one.strip() for one in re.split(r"(?<!\\)\|", line[1:-1])]
            if all(re.fullmatch(r"-+:?", cell) for cell in cells):
                continue
            plain = [re.sub(r"^\*\*(.*)\*\*$|^\*(.*)\*$", r"\1\2", cell) for cell in cells]
            plain = [re.sub(r"\\(.)", r"\1", cell).replace("&amp;", "&") for cell in plain]
            if not row_before:
                tables.append([])
            tables[-1].append(plain)
        row_before = is_row
    return tables
