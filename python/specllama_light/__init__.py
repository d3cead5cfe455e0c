"""The parts of specllama that work without llama.cpp, which takes a tenth of a second to load: what
other programs call at each of their starts, and what it needs."""
