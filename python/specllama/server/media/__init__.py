"""Images and sounds of requests; images are also downloaded, where the server's owner allows it."""
