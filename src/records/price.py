"""The price of a million tokens of a model, with its dates and source."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from .base import Record


def _iso_date(text: str) -> str:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise ValueError("write a date as YYYY-MM-DD")
    date.fromisoformat(text)
    return text


IsoDate = Annotated[str, AfterValidator(_iso_date)]
Rate = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class BatchPrice(Record):
    """What tokens cost in a batch, as shares of their usual prices."""

    share: float = Field(gt=0, le=1)
    cached_share: float = Field(gt=0, le=1)
    """Of the price of input that is read from a cache."""
    source: str = Field(min_length=1)
    read: IsoDate
    note: str = ""


class SearchPrice(Record):
    """What web searches cost at one provider, on top of the tokens of what they find."""

    per_1000: Rate
    """US dollars per 1,000 searches."""
    not_for: tuple[str, ...] = ()
    """Starts of API ids that pay otherwise. Their price is unknown, unless their row has it."""
    source: str = Field(min_length=1)
    read: IsoDate
    note: str = ""


class Price(Record):
    """What a million tokens cost."""

    input: Rate
    output: Rate
    cached: Rate | None = None
    """Input tokens read from a cache; None if unknown, and then they cost what other input costs."""
    cache_write: Rate | None = Field(default=None, exclude_if=lambda rate: rate is None)
    """Input tokens written to a cache; None where writing costs what other input costs."""
    batch: BatchPrice | None = Field(default=None, exclude_if=lambda batch: batch is None)
    """In a batch; None if unknown, and then tokens cost there what they cost elsewhere."""
    search: Rate | None = Field(default=None, exclude_if=lambda rate: rate is None)
    """US dollars per 1,000 web searches; None if unknown."""
    source: str = Field(min_length=1)
    read: IsoDate
    note: str = ""
    until: IsoDate | None = None
    """The last day of this price; `then` applies from the day after."""
    then: Price | None = None

    @model_validator(mode="after")
    def _ends_and_goes_on(self) -> Self:
        if (self.until is None) != (self.then is None):
            raise ValueError("until and then go together: give both or neither")
        return self

    def on(self, today: date) -> Price:
        """The price in force on a day."""
        if self.then is None or self.until is None or today.isoformat() <= self.until:
            return self
        return self.then.on(today)
