"""The parts of specllama that do not load llama.cpp, which takes a tenth of a second.

Other programs run them at each of their starts.
"""
