"""QAGS: is a summary consistent with its source, by questions whose answers both should share."""
