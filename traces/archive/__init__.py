"""Archives of traces: zip and tar, read member by member under limits, to numbered files."""
