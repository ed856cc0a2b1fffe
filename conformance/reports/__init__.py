"""Reports as files and on a terminal. The JSON document is canonical; all others are made from what it holds."""
