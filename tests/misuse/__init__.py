"""What people do wrong, and what must happen then: tables of rows, each of which is a test.

A row says in words what a person does, does it, and says what must happen: an error whose one line names the cause
(`refused`), a warning and a sensible result (`warned`), or a result (`works`). To add a case, add a row.
"""
