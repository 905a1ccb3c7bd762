"""One trace format a file."""
