"""The driver's connection behind one of SQLAlchemy's."""

from __future__ import annotations

from workflow_adapters.errors import ConfigurationError


async def driver_connection(session_or_connection: object, driver: str) -> object:
    """The connection of `driver` that SQLAlchemy uses, in the transaction that its first statement begins."""
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session

    if isinstance(session_or_connection, AsyncSession | async_scoped_session):
        connection = await session_or_connection.connection()
    elif isinstance(session_or_connection, AsyncConnection):
        connection = session_or_connection
    else:
        raise ConfigurationError(
            f"bind_sqlalchemy() takes an AsyncSession or AsyncConnection, not {type(session_or_connection).__name__}"
        )
    if connection.dialect.driver != driver:
        raise ConfigurationError(f"bind_sqlalchemy() needs SQLAlchemy over {driver}, not {connection.dialect.driver}")
    await connection.exec_driver_sql("SELECT 1")
    return (await connection.get_raw_connection()).driver_connection
