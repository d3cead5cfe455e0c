"""Images and sounds: read from files, data URLs, arrays and Pillow images; their positions in a
conversation."""
