from tests.contract.merge.conftest import engine

__all__ = ["engine"]
