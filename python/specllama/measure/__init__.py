"""Measurements of models and drafters on this machine: decode times, acceptance, speeds,
divergence. Imports `theory`, sessions and their parts."""
