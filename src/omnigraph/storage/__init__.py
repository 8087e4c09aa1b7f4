"""Tables and small objects, on local disk and S3: the only room that talks to Lance and obstore.

Everything here stages or reads; `heads` alone moves a table's head.
"""
