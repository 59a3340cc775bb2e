"""Runs MiniStack. With `--with-parent`, it ends when the process that started it does.

The second argument is a mark by which `npm run local:stop` knows this process from another one that may have got
its number since.
"""

import os
import shutil
import signal
import sys
import threading


def end_with_parent() -> None:
    # Standard input is a pipe from the parent. It ends when the parent does, even when that was killed.
    while os.read(0, 4096):
        pass
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    if os.getpgrp() == os.getpid():
        # The whole group: MiniStack and the Node processes that it runs the functions in.
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


if "--with-parent" in sys.argv:
    threading.Thread(target=end_with_parent, daemon=True).start()
sys.argv = sys.argv[:1]

from ministack.app import main  # noqa: E402

main()
