"""The contract: what every adapter promises, said once, in the docstrings of these Protocols.

Rules that hold for every method:

- Every datetime is aware; instants are truncated to the millisecond and come back as UTC.
- Each call is atomic: its whole effect happens or none of it, cancelled or not.
- Invalid values raise InvalidValueError before anything is written. A missing parent raises NotFoundError naming it.
- Errors other than BackendError leave the surrounding transaction usable.
- Text is ordered bytewise; "insertion order" is by id among rows of one created_at.
"""
