"""The service, the command line, and the wiring: the only package that knows web, database and environment."""
