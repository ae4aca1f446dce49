"""The tables, how they are opened, and how an older database becomes today's."""
