# SPDX-License-Identifier: Apache-2.0
"""torchrun, with its arguments; that this host did not meet the others is an event line, too."""
import os
import socket
import sys

import events
from torch.distributed import run
from torch.distributed.elastic.rendezvous.api import RendezvousError


def main():
    options = run.parse_args(sys.argv[1:])
    try:
        run.run(options)
    except RendezvousError as error:
        name = os.environ.get("HOST_NAME") or socket.gethostname()
        text = (f"{name} did not meet the other hosts of {options.nnodes} at {options.rdzv_endpoint} within "
                f"{os.environ.get('JOIN_TIMEOUT_S', '300')} s: start all of them with the same NNODES, RDZV_ENDPOINT and RDZV_ID, "
                f"and open the port there ({type(error).__name__}: {str(error)[:200]})")
        events.finished("failed", 0, error=text)
        sys.exit(1)


if __name__ == "__main__":
    main()
