"""What the ranks of a job show together: clocks, waiting apart from transfer, stragglers, links."""
