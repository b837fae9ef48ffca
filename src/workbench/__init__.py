"""Pages in a browser: look at runs, judge claims, settle what people disagree about."""
