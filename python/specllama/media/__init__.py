"""Images and sounds: read from files, data URLs, arrays and Pillow's images, and their places in a
conversation."""
