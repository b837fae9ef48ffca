"""The states, the District of Columbia and the territories, by name and postal code."""

from __future__ import annotations

_NAMES = """
Alabama AL|Alaska AK|Arizona AZ|Arkansas AR|California CA|Colorado CO|Connecticut CT|Delaware DE|Florida FL|Georgia GA|
Hawaii HI|Idaho ID|Illinois IL|Indiana IN|Iowa IA|Kansas KS|Kentucky KY|Louisiana LA|Maine ME|Maryland MD|
Massachusetts MA|Michigan MI|Minnesota MN|Mississippi MS|Missouri MO|Montana MT|Nebraska NE|Nevada NV|New Hampshire NH|
New Jersey NJ|New Mexico NM|New York NY|North Carolina NC|North Dakota ND|Ohio OH|Oklahoma OK|Oregon OR|Pennsylvania PA|
Rhode Island RI|South Carolina SC|South Dakota SD|Tennessee TN|Texas TX|Utah UT|Vermont VT|Virginia VA|Washington WA|
West Virginia WV|Wisconsin WI|Wyoming WY|District of Columbia DC|Puerto Rico PR|Guam GU|U.S. Virgin Islands VI|
American Samoa AS|Northern Mariana Islands MP
"""
_PAIRS = [entry.strip().rpartition(" ") for entry in _NAMES.split("|")]
STATES = frozenset(text.casefold() for name, _, code in _PAIRS for text in (name, code))
"""In small letters, as `str.casefold` writes them."""
