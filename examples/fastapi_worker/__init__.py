"""An order service: FastAPI, a worker inside it, business rows and workflow rows in one transaction."""
