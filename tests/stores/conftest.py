"""What the tests of stores share."""

from tests.support.redis import own_redis_server, redis_server

__all__ = ["own_redis_server", "redis_server"]
