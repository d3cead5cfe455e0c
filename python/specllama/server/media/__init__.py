"""Images and sounds of requests. Images are also downloaded, if the settings allow it."""
