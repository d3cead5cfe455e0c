"""A model before anybody generates with it: finding, fetching and loading it, its texts and tokens.
Imports `formats`."""
