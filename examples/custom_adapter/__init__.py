"""A job queue over Redis: a whole adapter of the JobQueue port by somebody who has only the contract."""

from examples.custom_adapter.job_queue import RedisJobQueue
from examples.custom_adapter.opening import open_redis_queue

__all__ = ["RedisJobQueue", "open_redis_queue"]
