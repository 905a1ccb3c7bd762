"""SQLite exports of Nsight Systems: a guarded look into the database, its tables as columns, conversion to `Trace`."""
