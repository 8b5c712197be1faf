#!/usr/bin/env python3
"""ai_sdk_test.py NODE DIRECTORY: runs the example for the Vercel AI SDK with the published package and a real server."""
from __future__ import annotations

import subprocess
import sys

from harness import Server

with Server() as server:
    done = subprocess.run([sys.argv[1], "--test", "sandbox_tools_test.ts"], cwd=sys.argv[2], env=server.environment, timeout=120,
                          check=False)
sys.exit(done.returncode)
