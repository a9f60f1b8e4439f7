from typing import Final

ABI_VERSION: Final[int]
COMPILER: Final[str]
INSTRUCTION_SET: Final[str]
SANITIZED: Final[bool]
CHECKS_BOUNDS: Final[bool]
