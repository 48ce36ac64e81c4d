"""What mkdocs makes of the code: the help of commands, and examples in docstrings."""

import re
from typing import Any

import griffe
import typer.main

from tilp.cli import app

MARK = "<!-- help of all commands -->"


def command_help() -> str:
    """Return the help of every command at 80 columns, as Markdown."""
    parts = []

    def add(command: Any, name: str, parent: Any) -> None:
        context = command.make_context(
            name, [], parent=parent, resilient_parsing=True, terminal_width=80, max_content_width=80
        )
        parts.append(f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n")
        for child, subcommand in getattr(command, "commands", {}).items():
            add(subcommand, child, context)

    add(typer.main.get_command(app), "tilp", None)
    return "\n".join(parts)


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Put the help in place of the mark in cli.md."""
    return markdown.replace(MARK, command_help()) if page.file.src_path == "cli.md" else markdown


class Doctests(griffe.Extension):
    """Show doctests as code, wherever they stand in a docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        """Fence the doctests of an object."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(
                r"^>>> (?:.+(?:\n|\Z))+",
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n",
                obj.docstring.value,
                flags=re.MULTILINE,
            )
