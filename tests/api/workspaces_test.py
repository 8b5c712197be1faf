#!/usr/bin/env python3
"""Sandboxes of tokens with a directory of the host: commits, and the owner's approval of them."""
import base64
import json
import os
import shutil
import tempfile
import time

import api
from api import ApiTest


class Workspaces(ApiTest):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="ca-ws-", dir="/tmp")
        with open(os.path.join(cls.directory, "file.txt"), "w") as file:
            file.write("before\n")
        os.chmod(cls.directory, 0o755)
        cls.options = ["--allow-workspace", cls.directory]
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        super().setUpClass()

    def content(self):
        with open(os.path.join(self.directory, "file.txt")) as file:
            return file.read()

    def test_commit_needs_the_digest_and_the_owner(self):
        # CONFORMS("R-HTTP-5")
        box = self.alice.create(workspace=self.directory)
        self.alice.run(box, "echo after > file.txt")
        at = f"/v1/sandboxes/{box}/commit"
        self.assertStatus(self.alice.call("POST", at, {}), 400)
        digest = self.assertStatus(self.alice.call("POST", at, {"dry_run": True}), 200).json["digest"]
        refused = self.assertStatus(self.alice.call("POST", at, {"expect": digest}), 403, "approval_required")
        self.assertEqual(self.content(), "before\n")
        self.owner.call("POST", "/v1/approvals/" + refused.json["approvals"][0]["id"], {"decision": "allow"})
        self.assertStatus(self.alice.call("POST", at, {"expect": "0" * 64}), 409, "digest_mismatch")
        self.alice.run(box, "echo other > file.txt")
        other = self.alice.call("POST", at, {"dry_run": True}).json["digest"]
        self.assertStatus(self.alice.call("POST", at, {"expect": other}), 403, "approval_required")
        self.assertStatus(self.alice.call("POST", at, {"expect": digest}), 409, "digest_mismatch")
        self.assertEqual(self.content(), "before\n")
        self.alice.run(box, "echo after > file.txt")
        self.assertStatus(self.alice.call("POST", at, {"expect": digest}), 200)
        self.assertEqual(self.content(), "after\n")

    def test_names_that_are_not_utf8_are_distinct_and_can_be_selected(self):
        first, second = (base64.b64encode(name).decode() for name in (b"a\xfe\nb", b"a\xff\nb"))
        box = self.owner.create(workspace=self.directory)
        self.owner.run(box, r"""printf 1 > "$(printf 'a\377\nb')"; printf 2 > "$(printf 'a\376\nb')"; printf 'l\351\n' > latin""")
        changes = self.owner.call("GET", f"/v1/sandboxes/{box}/diff", query={"patch": "true"}).json["changes"]
        named = [one["path"] for one in changes if one.get("path_encoding") == "base64"]
        self.assertEqual(named, [first, second])
        patch = next(one for one in changes if one["path"] == "latin")
        self.assertEqual(patch["patch_encoding"], "base64")
        self.assertIn(b"\n+l\xe9\n", base64.b64decode(patch["patch"]))
        at = f"/v1/sandboxes/{box}/commit"
        wanted = {"paths": [second], "encoding": "base64"}
        planned = self.assertStatus(self.owner.call("POST", at, {**wanted, "dry_run": True}), 200).json
        self.assertEqual([(one["path"], one["path_encoding"]) for one in planned["applied"]], [(second, "base64")])
        self.assertStatus(self.owner.call("POST", at, {**wanted, "expect": planned["digest"]}), 200)
        written = [name for name in os.listdir(os.fsencode(self.directory)) if name.startswith(b"a")]
        self.assertEqual(written, [b"a\xff\nb"])
        for wrong in ("Y!", "YQA="):
            body = {"paths": [wrong], "encoding": "base64", "dry_run": True}
            self.assertStatus(self.owner.call("POST", at, body), 400, "invalid_body")

    def test_diff_leaves_out_secrets_that_the_host_writes_later(self):
        box = self.alice.create(workspace=self.directory)
        self.alice.run(box, "echo mine > .env; echo mine > id_rsa; echo mine > ordinary.txt")
        for name in (".env", "id_rsa", "ordinary.txt"):
            path = os.path.join(self.directory, name)
            with open(path, "w") as file:
                file.write("K=of-the-host\n")
            self.addCleanup(os.unlink, path)
        changes = self.alice.call("GET", f"/v1/sandboxes/{box}/diff", query={"patch": "true"}).json["changes"]
        found = {one["path"]: one for one in changes}
        for name in (".env", "id_rsa"):
            self.assertNotIn("of-the-host", json.dumps(found[name]))
            self.assertEqual(found[name]["omitted"], "hidden on the host")
        self.assertIn("of-the-host", found["ordinary.txt"]["patch"])

    def test_commit_with_another_digest_is_a_conflict(self):
        box = self.owner.create(workspace=self.directory)
        at, before = f"/v1/sandboxes/{box}/commit", self.content()
        self.owner.run(box, "echo first > file.txt")
        digest = self.assertStatus(self.owner.call("POST", at, {"dry_run": True}), 200).json["digest"]
        self.owner.run(box, "echo second > file.txt")
        for body in ({"expect": digest}, {"expect": digest, "dry_run": True}, {"expect": "0" * 64}):
            refused = self.assertStatus(self.owner.call("POST", at, body), 409, "digest_mismatch")
            self.assertIn("dry run", refused.json["try"])
        self.assertEqual(self.content(), before)

    def ask_to_commit(self, box, paths=None):
        """Asks for the approval of a commit; returns the digest and the request as the owner sees it."""
        at, body = f"/v1/sandboxes/{box}/commit", {"paths": paths} if paths else {}
        digest = self.assertStatus(self.alice.call("POST", at, {"dry_run": True, **body}), 200).json["digest"]
        refused = self.assertStatus(self.alice.call("POST", at, {"expect": digest, **body}), 403, "approval_required")
        pending = refused.json["approvals"][0]["id"]
        shown = self.assertStatus(self.owner.call("GET", f"/v1/approvals/{pending}"), 200).json
        self.assertIn(shown, self.owner.call("GET", "/v1/approvals").json["approvals"])
        return digest, shown

    def test_owner_sees_what_a_commit_contains(self):
        # CONFORMS("R-HTTP-5")
        box = self.alice.create(workspace=self.directory)
        self.alice.run(box, "mkdir .vscode; echo '{}' > .vscode/tasks.json; echo newer > file.txt; ln -s file.txt l.txt; printf 12345 > a.sh; chmod +x a.sh")
        digest, shown = self.ask_to_commit(box, [".vscode/tasks.json", "file.txt", "l.txt", "a.sh"])
        self.assertEqual((shown["digest"], shown["changes_not_listed"], shown["changes_total"]), (digest, 0, len(shown["changes"])))
        self.assertIn("exactly this content, digest " + digest, shown["meaning"])
        self.assertNotIn("without showing", shown["meaning"])
        self.assertIn("CAREFUL", shown["meaning"])
        self.assertIn(".vscode/tasks.json (", shown["meaning"])
        changes = {one["path"]: one for one in shown["changes"]}
        self.assertEqual(changes["file.txt"], {"kind": "modified", "path": "file.txt", "type": "regular file", "size": 6})
        self.assertEqual((changes["a.sh"]["kind"], changes["a.sh"]["size"], changes["a.sh"]["executable"]), ("added", 5, True))
        self.assertEqual(changes["l.txt"]["target"], "file.txt")
        self.assertIn("editor", changes[".vscode/tasks.json"]["caution"])
        self.assertEqual(shown["changes_with_caution"], len([one for one in shown["changes"] if "caution" in one]))
        self.assertIn("caution", shown["changes"][0])

    def test_workspace_in_a_directory_that_the_host_executes_is_marked(self):
        for name in (".claude", ".vscode", ".github/workflows", ".git/hooks"):
            directory = os.path.join(self.directory, "place", name)
            os.makedirs(directory)
            box = self.alice.create(workspace=directory)
            self.alice.run(box, "echo '{}' > settings.json")
            planned = self.alice.call("POST", f"/v1/sandboxes/{box}/commit", {"dry_run": True}).json
            self.assertEqual(planned["applied"], [])
            _, shown = self.ask_to_commit(box, ["settings.json"])
            self.assertEqual(shown["changes_with_caution"], 1)
            self.assertIn("CAREFUL", shown["meaning"])

    def test_workspace_below_is_judged_from_the_directory_of_the_flag(self):
        directory = os.path.join(self.directory, "tools", "vscode")
        os.makedirs(directory)
        link = os.path.join(self.directory, ".vscode")
        os.symlink("tools/vscode", link)
        self.addCleanup(os.remove, link)
        box = self.alice.create(workspace=os.path.join(self.directory, "tools"))
        self.alice.run(box, "echo '{}' > vscode/tasks.json")
        planned = self.alice.call("POST", f"/v1/sandboxes/{box}/commit", {"dry_run": True}).json
        self.assertEqual(planned["applied"], [])

    def test_marked_changes_are_listed_first_and_the_rest_is_counted(self):
        box = self.alice.create(workspace=self.directory)
        self.alice.run(box, "mkdir a; for i in $(seq 400); do echo x > a/$i.txt; done; mkdir z; echo x > z/.bashrc")
        _, shown = self.ask_to_commit(box, ["a", "z/.bashrc"])
        self.assertEqual(shown["changes_total"], 403)
        self.assertEqual(shown["changes_not_listed"], 403 - len(shown["changes"]))
        self.assertLessEqual(len(shown["changes"]), 100)
        self.assertIn("z/.bashrc", [one["path"] for one in shown["changes"] if one.get("caution")])
        self.assertIn("403 changes", shown["meaning"])
        events = self.owner.open("GET", "/v1/events?after=0")
        for kind, _, event in api.events(events):
            if kind == "approval.requested" and event["data"].get("changes_total") == 403:
                self.assertNotIn("changes", event["data"])
                break
        events.connection.close()

    def test_names_in_an_approval_are_escaped(self):
        box = self.alice.create(workspace=self.directory)
        self.alice.run(box, r"""printf x > "$(printf 'a\033[2J\nadded b.txt')"; printf x > "$(printf 'c\342\200\256.txt')"; printf x > "$(printf 'd\377.txt')" """)
        names = ["a\x1b[2J\nadded b.txt", "c\u202e.txt"]
        _, shown = self.ask_to_commit(box, names)
        text = json.dumps(shown, ensure_ascii=False)
        for raw in ("\\u001b", "\x1b", "\u202e"):
            self.assertNotIn(raw, text)
        paths = [one["path"] for one in shown["changes"] if one.get("escaped")]
        self.assertIn("a\\x1b[2J\\nadded b.txt", paths)
        self.assertIn("c\\u{202e}.txt", paths)

    def test_directory_settles_every_conflict_in_it(self):
        real = os.path.join(self.directory, "settled/a.txt")
        os.makedirs(os.path.dirname(real))
        with open(real, "w") as file:
            file.write("old\n")
        box = self.alice.create(workspace=self.directory)
        self.alice.run(box, "echo sandbox > settled/a.txt")
        with open(real, "w") as file:
            file.write("host\n")
        at = f"/v1/sandboxes/{box}/commit"
        dry = {"dry_run": True, "paths": ["settled"]}
        plain = self.assertStatus(self.alice.call("POST", at, dry), 200).json
        self.assertEqual([one["path"] for one in plain["conflicts"]], ["settled/a.txt"])
        for path in ("settled", "."):
            theirs = self.assertStatus(self.alice.call("POST", at, {**dry, "theirs": [path]}), 200).json
            self.assertEqual(([one["path"] for one in theirs["applied"]], theirs["conflicts"]), (["settled/a.txt"], []))
            ours = self.assertStatus(self.alice.call("POST", at, {**dry, "ours": [path]}), 200).json
            self.assertEqual((ours["kept"], ours["conflicts"]), (["settled/a.txt"], []))
        missed = self.assertStatus(self.alice.call("POST", at, {**dry, "theirs": ["elsewhere"]}), 200).json
        self.assertEqual(missed["skipped"], [{"path": "elsewhere", "reason": "there is no conflict"}])

    def test_requests_for_approval_are_bounded(self):
        box = self.bob.create(workspace=self.directory)
        self.bob.run(box, "for i in $(seq 70); do echo $i > new$i.txt; done")
        at = f"/v1/sandboxes/{box}/commit"
        inbox = os.path.join(self.server.home, "server/inbox")
        before = set(os.listdir(inbox))
        for expect in ("x" * (1 << 19), "0" * 63, "0" * 65, "g" * 64, ""):
            self.assertStatus(self.bob.call("POST", at, {"expect": expect}), 400, "invalid_body")
        self.assertEqual(set(os.listdir(inbox)), before)
        for number in range(1, 71):
            paths = [f"new{number}.txt"]
            digest = self.bob.call("POST", at, {"dry_run": True, "paths": paths}).json["digest"]
            status = self.bob.call("POST", at, {"expect": digest, "paths": paths}).status
        self.assertEqual(status, 429)
        self.assertEqual(len(self.bob.call("GET", "/v1/approvals").json["approvals"]), 64)

    def test_unreadable_requests_for_approval_are_removed(self):
        inbox = os.path.join(self.server.home, "server/inbox")
        for name, content in (("ap-large.json", "x" * (1 << 21)), ("ap-broken.json", "{"), ("ap-new.json", "")):
            with open(os.path.join(inbox, name), "w") as file:
                file.write(content)
            old = time.time() - (0 if name == "ap-new.json" else 100)
            os.utime(os.path.join(inbox, name), (old, old))
        self.assertStatus(self.owner.call("GET", "/v1/approvals"), 200)
        self.assertEqual([name for name in ("ap-large.json", "ap-broken.json", "ap-new.json") if os.path.exists(os.path.join(inbox, name))],
                         ["ap-new.json"])

    def test_a_workspace_that_contains_the_servers_state_is_refused(self):
        for directory in (os.path.dirname(self.server.home), self.server.home, os.path.join(self.server.home, "audit")):
            reply = self.owner.call("POST", "/v1/sandboxes", {"workspace": directory})
            self.assertStatus(reply, 400, "invalid")
            self.assertIn("own state", reply.json["reason"])

    def test_directories_that_are_not_allowed_are_refused(self):
        self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"workspace": "/etc"}), 403)
        self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"workspace": self.directory + "/../"}), 403)


if __name__ == "__main__":
    api.main()
