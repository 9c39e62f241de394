"""Category columns in training: encodings, combinations."""
