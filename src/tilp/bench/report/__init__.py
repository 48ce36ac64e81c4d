"""Reports: one structure, written as HTML and as Markdown."""
