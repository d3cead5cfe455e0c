"""A model before anybody generates with it: found, fetched, loaded, its texts and tokens. Imports
`formats`."""
