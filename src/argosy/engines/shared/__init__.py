"""Parts that several engines share. No engine itself."""
