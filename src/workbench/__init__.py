"""Pages in a browser: look at runs, judge claims, settle what people disagree about.

They are routes of `view_app.py`, `review_app.py` and `collect_app.py`; `serve.py` knows no page.
"""
