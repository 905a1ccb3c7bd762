"""Remedies by family, one small file each; `table.REMEDIES` puts them in order."""
