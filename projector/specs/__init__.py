"""The vocabulary: frozen records that cross HTTP, YAML and the database."""
