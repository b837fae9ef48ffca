"""All of a series: one frozen study, run again and again, with alarms. docs/series.md is the guide."""
