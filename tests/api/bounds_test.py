#!/usr/bin/env python3
"""Memory, streams and connections of one token are bounded: it cannot exhaust the server for others."""
import api
from api import ApiTest


class EventBounds(ApiTest):
    def events_of(self, caller, count):
        response = caller.open("GET", "/v1/events", query={"after": 0})
        stream = api.events(response)
        found = [next(stream) for _ in range(count)]
        response.connection.close()
        return [(kind, data["data"]) for kind, _, data in found]

    def test_event_has_no_text_that_is_not_a_host(self):
        """Events stay in memory, 1024 of each token, so a host must not be as large as a body."""
        carol = self.server.client("carol")
        box = carol.create()
        at = f"/v1/sandboxes/{box}/network"
        for host in ("a" * 500_000, "not a host", "", "a." * 200 + "example"):
            for action in ("remove", "deny", "allow"):
                self.assertStatus(carol.call("POST", at, {"action": action, "host": host}), 400, "invalid")
        unchanged = self.assertStatus(carol.call("POST", at, {"action": "remove", "host": "example.org"}), 200)
        self.assertEqual(unchanged.json["allowed_hosts"], [])
        carol.call("POST", f"/v1/sandboxes/{box}/checkpoints", {"name": "last"})
        self.assertEqual(self.events_of(carol, 2), [("sandbox.created", {"name": ""}), ("checkpoint.created", {"name": "last"})])

    def test_removed_host_is_an_event(self):
        box = self.owner.create()
        at = f"/v1/sandboxes/{box}/network"
        for action in ("allow", "remove"):
            self.assertStatus(self.owner.call("POST", at, {"action": action, "host": "example.org"}), 200)
        response = self.owner.open("GET", "/v1/events", query={"after": 0})
        found = []
        for kind, _, data in api.events(response):
            if (kind, data["sandbox_id"]) == ("network.changed", box):
                found.append(data["data"]["action"])
            if len(found) == 2:
                break
        response.connection.close()
        self.assertEqual(found, ["allow", "remove"])


if __name__ == "__main__":
    api.main()
