"""File formats that loads and exports share: lines of text, what packs them, where they go."""
