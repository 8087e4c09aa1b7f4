"""The command line: standard output is data, standard error is talk."""
