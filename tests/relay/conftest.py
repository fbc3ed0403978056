"""What the tests of the relay share."""

from tests.support.redis import own_redis_server, redis_server

__all__ = ["own_redis_server", "redis_server"]
