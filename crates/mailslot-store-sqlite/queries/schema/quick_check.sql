-- Whether the pages of the file hang together. Answers 'ok', or what is wrong, line by line.
PRAGMA quick_check(10)
