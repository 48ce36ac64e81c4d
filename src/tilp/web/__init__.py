"""HTTP service of a model: a JSON API and the web page."""
