"""The folder that is published: layout, strict reading, card."""
