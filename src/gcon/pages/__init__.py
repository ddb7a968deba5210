"""The report and the site."""
