"""Measurements of models and drafters on this machine: decode times, acceptance, speeds,
divergence. Imports `theory`, and sessions and what they are made of."""
