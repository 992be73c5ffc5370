"""Where data comes from: generators, files, downloads. Records go out, one at a time."""
