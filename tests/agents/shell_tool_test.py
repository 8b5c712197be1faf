"""The hook that runs an agent's shell tool in a session, called as agents call it, and its installation."""
import json
import os
import subprocess

import harness


class ShellTool(harness.AgentTest):
    def hook(self, command, host="claude-code", flags=(), **members):
        call = {"hook_event_name": "PreToolUse", "session_id": "one", "cwd": str(self.project), "tool_name": "Bash",
                "tool_input": {"command": command, **members}}
        return self.caisson("agent", "hook", host, *flags, input=json.dumps(call))

    def shell(self, command, **more):
        """The tool's command, as the hook changes it, run by a shell as agents do."""
        answer = self.hook(command)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        changed = json.loads(answer.stdout)["hookSpecificOutput"]["updatedInput"]
        return self.run_program("bash", "-c", changed["command"], **more)

    def test_FilesReachTheProjectOnlyAfterCommit(self):
        # CONFORMS("R-AGENT-1")
        done = self.shell("echo 'it'\"'\"'s' > made.txt; cat made.txt; exit 3")
        self.assertEqual((done.stdout, done.returncode), ("it's\n", 3), done.stderr)
        self.assertFalse((self.project / "made.txt").exists())
        self.assertEqual(self.shell("cat made.txt").stdout, "it's\n")
        self.assertIn("A made.txt", self.caisson("agent", "diff").stdout)
        self.assertEqual(self.caisson("agent", "commit").returncode, 0)
        self.assertEqual((self.project / "made.txt").read_text(), "it's\n")
        self.assertEqual(len(self.sessions()), 1)

    def test_DirectoryLastsOverCommands(self):
        # CONFORMS("R-AGENT-1")
        (self.project / "sub").mkdir()
        self.assertEqual(self.shell("cd sub; pwd").stdout, f"{self.project}/sub\n")
        self.assertEqual(self.shell("pwd").stdout, f"{self.project}/sub\n")
        done = self.run_program(harness.CAISSON, "agent", "exec", "--", "pwd", cwd=self.project / "sub")
        self.assertEqual(done.stdout, f"{self.project}/sub\n")

    def test_KeyOfTheAgentIsUnreadable(self):
        # CONFORMS("R-AGENT-2")
        done = self.shell("echo reads; env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'")
        self.assertIn("reads", done.stdout)
        self.assertNotIn(harness.KEY, done.stdout)

    def test_NetworkIsClosed(self):
        done = self.shell("exec 3<>/dev/tcp/93.184.0.2/80")
        self.assertNotEqual(done.returncode, 0)

    def test_VariablesOfTheShellToolPass(self):
        self.environment.update(GIT_PAGER="cat", OTHER="not passed")
        self.assertEqual(self.shell('echo "$GIT_PAGER:$OTHER"').stdout, "cat:\n")

    def test_AnswerKeepsOtherMembers(self):
        answer = json.loads(self.hook("ls", timeout=5000, run_in_background=True).stdout)["hookSpecificOutput"]
        self.assertEqual((answer["updatedInput"]["timeout"], answer["updatedInput"]["run_in_background"]), (5000, True))
        self.assertNotIn("permissionDecision", answer)
        answer = json.loads(self.hook("ls", flags=["--auto-allow"]).stdout)["hookSpecificOutput"]
        self.assertEqual(answer["permissionDecision"], "allow")

    def test_FailureBlocksTheCommand(self):
        # CONFORMS("R-AGENT-3")
        for text in ("", "[]", "{}", '{"hook_event_name":"PreToolUse","cwd":"/","tool_input":{"command":"ls"}}',
                     '{"hook_event_name":"PreToolUse","cwd":"%s","tool_input":{}}' % self.project):
            self.assertEqual(self.caisson("agent", "hook", "claude-code", input=text).returncode, 2, text)

    def test_ModelAndUserAreTold(self):
        start = {"hook_event_name": "SessionStart", "cwd": str(self.project)}
        told = self.caisson("agent", "hook", "claude-code", input=json.dumps(start))
        self.assertIn("caisson agent commit", json.loads(told.stdout)["hookSpecificOutput"]["additionalContext"])
        stop = {"hook_event_name": "Stop", "cwd": str(self.project)}
        self.assertEqual(self.caisson("agent", "hook", "claude-code", input=json.dumps(stop)).stdout, "")
        self.shell("echo x > changed")
        told = self.caisson("agent", "hook", "claude-code", input=json.dumps(stop))
        self.assertIn("1 change", json.loads(told.stdout)["systemMessage"])


class Install(harness.AgentTest):
    def setUp(self):
        super().setUp()
        self.settings = self.project / ".claude" / "settings.json"
        self.settings.parent.mkdir()

    def install(self, *flags, host="claude-code", verb="install"):
        return self.caisson("agent", verb, host, "--yes", *flags)

    def command(self, event="PreToolUse"):
        return json.loads(self.settings.read_text())["hooks"][event][-1]["hooks"][0]["command"]

    def test_OtherSettingsAreKeptAndRestored(self):
        # CONFORMS("R-AGENT-4")
        before = {"model": "opus", "hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": [
            {"type": "command", "command": "lint"}]}]}, "env": {"A": "b"}}
        self.settings.write_text(json.dumps(before, indent=2) + "\n")
        self.assertEqual(self.install().returncode, 0)
        after = json.loads(self.settings.read_text())
        self.assertEqual(after["hooks"]["PreToolUse"][0], before["hooks"]["PreToolUse"][0])
        self.assertEqual((after["model"], after["env"]), ("opus", {"A": "b"}))
        self.assertEqual(self.install(verb="uninstall").returncode, 0)
        self.assertEqual(json.loads(self.settings.read_text()), before)

    def test_SecondInstallReplacesTheFirst(self):
        # CONFORMS("R-AGENT-4")
        self.assertEqual(self.install().returncode, 0)
        text = self.settings.read_text()
        self.assertIn("already", self.install().stdout)
        self.assertEqual(self.settings.read_text(), text)
        self.assertEqual(self.install("--memory", "1G").returncode, 0)
        self.assertEqual(len(json.loads(self.settings.read_text())["hooks"]["PreToolUse"]), 1)
        self.assertIn("--memory=1G", self.command())

    def test_ProjectFileHasNoPathOfThisMachine(self):
        # CONFORMS("R-AGENT-4")
        self.install()
        self.assertNotIn(str(self.scratch), self.settings.read_text())
        self.assertNotIn(os.path.dirname(harness.CAISSON), self.settings.read_text())

    def test_MalformedFileIsRefused(self):
        # CONFORMS("R-AGENT-4")
        for text in ("{", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', '// note\n{}'):
            self.settings.write_text(text)
            refused = self.install()
            self.assertEqual(refused.returncode, 125, text)
            self.assertEqual(self.settings.read_text(), text)

    def test_LinkIsRefused(self):
        other = self.scratch / "other.json"
        other.write_text("{}")
        self.settings.symlink_to(other)
        self.assertEqual(self.install().returncode, 125)
        self.assertEqual(other.read_text(), "{}")

    def test_WrongPolicyIsRefused(self):
        self.assertEqual(self.install("--memory", "much").returncode, 125)
        self.assertFalse(self.settings.exists())

    def test_MissingCaissonBlocksTheCommand(self):
        # CONFORMS("R-AGENT-3")
        self.install()
        for event, status in (("PreToolUse", 2), ("Stop", 0)):
            done = self.run_program("sh", "-c", self.command(event), env={"PATH": "/usr/bin:/bin"})
            self.assertEqual(done.returncode, status, event)

    def test_HookDoesNothingInsideASandbox(self):
        self.install()
        # Without caisson in its PATH, the hook would block the command.
        for shell in ("sh", "bash"):
            done = self.caisson("agent", "exec", "--", "env", "PATH=/usr/bin:/bin", shell, "-c", self.command())
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_VariablesDoNotSwitchTheHookOff(self):
        # CONFORMS("R-AGENT-3")
        self.install()
        call = {"hook_event_name": "PreToolUse", "session_id": "one", "cwd": str(self.project), "tool_name": "Bash",
                "tool_input": {"command": "ls"}}
        hostile = {**self.environment, "CAISSON": "1", "line": " /.mask-file//deleted /proc/keys "}
        for shell in ("sh", "bash"):
            done = self.run_program(shell, "-c", self.command(), env=hostile, input=json.dumps(call))
            self.assertIn("agent exec", json.loads(done.stdout)["hookSpecificOutput"]["updatedInput"]["command"])

    def test_CodexFileIsInTheHome(self):
        done = self.install(host="codex")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("/hooks", done.stderr)
        hooks = json.loads((self.home / ".codex" / "hooks.json").read_text())["hooks"]["PreToolUse"]
        self.assertEqual(hooks[0]["matcher"], "^Bash$")

    def test_NeedsConfirmation(self):
        refused = self.caisson("agent", "install", "claude-code", stdin=subprocess.DEVNULL)
        self.assertEqual(refused.returncode, 125)
        self.assertFalse(self.settings.exists())


if __name__ == "__main__":
    harness.main()
