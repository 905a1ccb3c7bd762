"""Two summaries of the same job, before and after a change."""
