#!/usr/bin/env python3
"""Prints the OpenAPI document of a server."""
import sys

import api

server = api.Server()
try:
    sys.stdout.write(server.owner().call("GET", "/v1/openapi.json").body.decode())
finally:
    server.close()
