"""What survives a restart: job rows and uploaded traces."""
