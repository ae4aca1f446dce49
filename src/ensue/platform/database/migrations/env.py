"""What Alembic runs first: take the connection that `migrating.py` hands over."""

from alembic import context

from ensue.platform.database.schema import metadata

connection = context.config.attributes["connection"]
# SQLite changes a column by copying the table.
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
context.run_migrations()
