"""`specllama bench`: what speculation is worth on this machine, measured."""

from __future__ import annotations

import argparse


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    commands.add_parser("bench")
