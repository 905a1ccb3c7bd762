"""Notes on sharding, indexed into Chroma and retrieved with citations."""
