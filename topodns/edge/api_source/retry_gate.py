"""What the reflectors of one API server have in common when it is in trouble: their retries."""

import asyncio
import math
from typing import Final

SPACING: Final = 0.8  # seconds between two retries, whichever kinds they are for


class RetryGate:
    """Keeps retries apart, and ends everybody's waiting once one of them has succeeded.

    `losses` counts how often the server was lost to a watch, or not well enough for one, which concerns all.
    """

    def __init__(self) -> None:
        self.losses = 0
        self._back = asyncio.Event()
        self._last = -math.inf

    async def wait(self, seconds: float, patient: bool = False) -> None:
        """Wait that long, and until no other retry is near. `patient`: the server asked for it, so the whole time.

        However well others fare, this is never shorter than SPACING: their success may not be this one's.
        """
        back = asyncio.Event() if patient else self._back
        await asyncio.sleep(SPACING)
        try:
            async with asyncio.timeout(max(0.0, seconds - SPACING)):
                await back.wait()
        except TimeoutError:
            await self._take_turn()

    def open(self) -> None:
        """The server is well again."""
        self._back.set()
        self._back = asyncio.Event()

    async def _take_turn(self) -> None:
        now = asyncio.get_running_loop().time()
        self._last = max(now, self._last + SPACING)
        await asyncio.sleep(self._last - now)
