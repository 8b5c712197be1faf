"""The hook that runs an agent's shell tool in a session, called as agents call it, and its installation."""
import hashlib
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
        """Runs the tool's command, as changed by the hook, in a shell, as agents do."""
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

    def test_LandlockTierStartsInItsCopyOfTheProject(self):
        (self.project / "sub").mkdir()
        (self.project / "sub/file").write_text("of the project\n")

        def run(line):
            return self.run_program(harness.CAISSON, "agent", "exec", "--tier", "landlock", "--remember", "one", "--",
                                    line, cwd=self.project / "sub")
        done = run("cat file; echo made > made.txt; mkdir below; cd below")
        self.assertEqual((done.stdout, done.returncode), ("of the project\n", 0), done.stderr)
        self.assertFalse((self.project / "sub/made.txt").exists())
        done = run("cat ../made.txt; pwd")
        self.assertTrue(done.stdout.startswith("made\n") and done.stdout.endswith("/sub/below\n"), done)

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
        for text in ("", "[]", "{}",
                     '{"hook_event_name":"PreToolUse","cwd":"/","tool_name":"Bash","tool_input":{"command":"ls"}}',
                     '{"hook_event_name":"PreToolUse","cwd":"%s","tool_name":"Bash","tool_input":{}}' % self.project):
            self.assertEqual(self.caisson("agent", "hook", "claude-code", input=text).returncode, 2, text)

    def test_ToolOfAnotherShellIsBlocked(self):
        # CONFORMS("R-AGENT-3")
        attack = "x'; id > /tmp/out; #"
        for host, tool, status in (("claude-code", "PowerShell", 2), ("claude-code", "", 2), ("claude-code", None, 2),
                                   ("claude-code", "run_shell_command", 2), ("codex", "PowerShell", 2),
                                   ("gemini", "Bash", 2), ("claude-code", "Bash", 0), ("claude-code", "Monitor", 0),
                                   ("codex", "Bash", 0), ("gemini", "run_shell_command", 0)):
            call = {"hook_event_name": "PreToolUse", "cwd": str(self.project), "tool_name": tool,
                    "tool_input": {"command": attack}}
            answer = self.caisson("agent", "hook", host, input=json.dumps(call))
            self.assertEqual(answer.returncode, status, (host, tool))
            if status == 2:
                self.assertEqual(answer.stdout, "")
                self.assertIn("not known to use a POSIX shell", answer.stderr)

    def test_SessionOfAnotherWorkspaceIsRefused(self):
        # CONFORMS("R-AGENT-1")
        digest = hashlib.sha256(str(self.project).encode()).hexdigest()[:10]
        name = f"agent-project-{digest}"
        other = self.scratch / "other"
        other.mkdir()
        for workspace in (str(other), str(self.project)):  # the second is at /workspace, not at its own path
            made = self.caisson("session", "create", "--name", name, "--workspace", workspace)
            self.assertEqual(made.returncode, 0, made.stderr)
            planted = self.caisson("session", "exec", name, "--", "sh", "-c", "echo x > planted.txt")
            self.assertEqual(planted.returncode, 0, planted.stderr)
            for command in (("exec", "--", "cat planted.txt"), ("diff",), ("commit",)):
                refused = self.caisson("agent", *command)
                self.assertEqual((refused.returncode, refused.stdout), (125, ""), command)
                self.assertIn("caisson session destroy " + name, refused.stderr)
            stop = {"hook_event_name": "Stop", "cwd": str(self.project)}
            self.assertEqual(self.caisson("agent", "hook", "claude-code", input=json.dumps(stop)).stdout, "")
            self.assertFalse((other / "planted.txt").exists() or (self.project / "planted.txt").exists())
            self.assertEqual(self.caisson("session", "destroy", name).returncode, 0)
        self.assertEqual(self.caisson("agent", "exec", "--", "echo fine").stdout, "fine\n")

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
        for text in ("{", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', '// note\n{}',
                     '{"a": 123456789012345678901234567890}', '{"a": 1, "a": 2}'):
            self.settings.write_text(text)
            refused = self.install()
            self.assertEqual(refused.returncode, 125, text)
            self.assertEqual(self.settings.read_text(), text)

    def test_DisabledHooksAreRefused(self):
        # CONFORMS("R-AGENT-3")
        users = self.home / ".claude" / "settings.json"
        users.parent.mkdir()
        for file in (self.settings, self.project / ".claude" / "settings.local.json", users):
            file.write_text('{"disableAllHooks": true}')
            for host in ("claude-code", "claude-code-user"):
                refused = self.install(host=host)
                self.assertEqual(refused.returncode, 125, (file, host))
                self.assertIn("disableAllHooks", refused.stderr)
            self.assertEqual(file.read_text(), '{"disableAllHooks": true}')
            if file != self.settings:
                for text in ('// mine\n{"disableAllHooks": /* yes */ true}', '{"disableAllHooks": true,}'):
                    file.write_text(text)
                    refused = self.install()
                    self.assertEqual(refused.returncode, 125, text)
                    self.assertIn("disableAllHooks", refused.stderr)
            file.write_text('{"disableAllHooks": false}')
        self.assertEqual(self.install().returncode, 0)
        self.settings.write_text(json.dumps({**json.loads(self.settings.read_text()), "disableAllHooks": True}))
        self.assertEqual(self.install(verb="uninstall").returncode, 0)

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

    def test_ChangeDuringTheQuestionIsKept(self):
        # CONFORMS("R-AGENT-4")
        for verb in ("install", "uninstall"):
            changed = json.loads(self.settings.read_text()) if self.settings.exists() else {}
            changed["account"] = "new of " + verb

            def change():
                self.settings.write_text(json.dumps(changed))
                return "y\n"
            command = [harness.CAISSON, "agent", verb, "claude-code"]
            status, shown = self.on_terminal(command, [("write it? [y/N] ", change)])
            self.assertEqual(status, 125, shown)
            self.assertIn("changed meanwhile", shown)
            self.assertEqual(json.loads(self.settings.read_text()), changed)
            status, shown = self.on_terminal(command, [("write it? [y/N] ", "y\n")])
            self.assertEqual(status, 0, shown)
            self.assertEqual(json.loads(self.settings.read_text())["account"], changed["account"])

    def test_DeclinedChangeIsReported(self):
        for verb in ("install", "uninstall"):
            before = self.settings.read_text() if self.settings.exists() else None
            status, shown = self.on_terminal([harness.CAISSON, "agent", verb, "claude-code"], [("write it? [y/N] ", "n\n")])
            self.assertEqual(status, 125, shown)
            self.assertIn("nothing was changed", shown)
            self.assertNotRegex(shown, r"written;|removed;")
            self.assertEqual(self.settings.read_text() if self.settings.exists() else None, before)
            self.assertEqual(self.install().returncode, 0)

    def test_NewFilesAreNotReadableByOthers(self):
        # CONFORMS("R-AGENT-4")
        for mask in (0o077, 0o022):
            for host, file, mode in (("claude-code-user", self.home / ".claude" / "settings.json", 0o600),
                                     ("codex", self.home / ".codex" / "hooks.json", 0o600),
                                     ("claude-code", self.settings, 0o666 & ~mask)):
                done = self.run_program(harness.CAISSON, "agent", "install", host, "--yes", "--env", "TOKEN=s3cret",
                                        umask=mask)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(file.stat().st_mode & 0o777, mode, (host, oct(mask)))
                file.unlink()
        self.assertEqual((self.home / ".codex").stat().st_mode & 0o777, 0o700)
        self.settings.write_text("{}")
        self.settings.chmod(0o640)
        self.assertEqual(self.install().returncode, 0)
        self.assertEqual(self.settings.stat().st_mode & 0o777, 0o640)

    def test_NeedsConfirmation(self):
        refused = self.caisson("agent", "install", "claude-code", stdin=subprocess.DEVNULL)
        self.assertEqual(refused.returncode, 125)
        self.assertFalse(self.settings.exists())


if __name__ == "__main__":
    harness.main()
