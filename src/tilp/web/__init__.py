"""The service, and the page that it serves: a model asked over HTTP."""
