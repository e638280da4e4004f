"""Parts that several engines share. Contains no engine."""
