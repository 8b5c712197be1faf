"""`caisson agent -- CMD` with a small agent that prints what it can read and which hosts it can connect to."""
import os
import shutil

import harness


class WholeAgent(harness.AgentTest):
    def setUp(self):
        super().setUp()
        (self.scratch / "opt" / "bin").mkdir(parents=True)
        program = self.scratch / "opt" / "bin" / "claude"
        shutil.copy(harness.ROOT / "tests/agents/fake_agent.py", program)
        program.chmod(0o755)
        (self.scratch / "bin" / "claude").symlink_to(program)
        self.address, self.authority = self.model_with_tls([])
        self.environment["ANTHROPIC_BASE_URL"] = self.address
        self.command = [harness.CAISSON, "agent", "--policy", self.policy(), "--api-ca", self.authority, "--", "claude"]

    def test_KeyIsAddedOutsideAndChangesAreKept(self):
        # CONFORMS("R-AGENT-2")
        done = self.run_program(*self.command)
        self.assertEqual(done.returncode, 7, done.stderr + done.stdout)
        self.assertIn("model: True", done.stdout)
        self.assertIn("variable: caisson-credential-anthropic", done.stdout)
        self.assertEqual({request["key"] for request in self.requests()}, {harness.KEY})
        self.assertNotIn(harness.KEY, done.stdout)
        self.assertIn("other host: refused", done.stdout)
        self.assertIn(f"directory: {self.project}", done.stdout)
        self.assertFalse((self.project / "answer.txt").exists())
        session = self.sessions()[0]["id"]
        self.assertIn(f"caisson session commit {session}", done.stderr)
        self.assertIn("answer.txt", done.stdout)
        self.assertEqual(self.caisson("session", "commit", session).returncode, 0)
        self.assertEqual((self.project / "answer.txt").read_text(), "42\n")

    def test_SettingsAreCopiedWithoutCredentials(self):
        # CONFORMS("R-AGENT-5")
        settings = self.home / ".claude"
        (settings / "commands").mkdir(parents=True)
        (settings / "CLAUDE.md").write_text("be brief\n")
        (settings / ".credentials.json").write_text('{"accessToken": "canary-one"}')
        (settings / "settings.json").write_text('{"env": {"SERVICE_TOKEN": "canary-two"}}')
        (settings / "commands" / "test.md").write_text("run the tests\n")
        done = self.run_program(*self.command)
        self.assertIn("home: .claude/CLAUDE.md be brief", done.stdout)
        self.assertIn("home: .claude/commands/test.md run the tests", done.stdout)
        self.assertNotIn("canary", done.stdout)
        self.assertIn("not copied: .claude/settings.json: env.SERVICE_TOKEN", done.stderr)
        self.assertIn("not copied: .claude/.credentials.json: it holds credentials", done.stderr)
        (settings / "settings.json").write_text('{"model": "opus", "cleanupPeriodDays": 20}')
        shown = " ".join(self.run_program(*self.command).stdout.split())
        self.assertIn('home: .claude/settings.json { "model": "opus", "cleanupPeriodDays": 20 }', shown)

    def test_RepositoryOfASkillIsNotCopied(self):
        skill = self.home / ".claude" / "skills" / "deploy"
        (skill / ".git" / "objects").mkdir(parents=True)
        (skill / "SKILL.md").write_text("plain skill\n")
        (skill / ".git" / "objects" / "a").write_text("plain object\n")
        (skill / "part").mkdir()
        (skill / "part" / ".git").write_text("gitdir: plain link\n")
        (self.scratch / "bin" / "claude").unlink()
        (self.scratch / "bin" / "claude").write_text("#!/bin/sh\ngrep -r plain ~/.claude\n")
        (self.scratch / "bin" / "claude").chmod(0o755)
        done = self.run_program(*self.command)
        self.assertIn("plain skill", done.stdout)
        self.assertNotIn(".git", done.stdout)
        for path in ("deploy/.git", "deploy/part/.git"):
            self.assertIn(f"not copied: .claude/skills/{path}: it belongs to git", done.stderr)

    def test_YesOnTheTerminalWritesTheChanges(self):
        # CONFORMS("R-AGENT-6")
        status, shown = self.on_terminal(self.command, [("[y/N]", "y\n")])
        self.assertEqual(status, 7, shown)
        self.assertEqual((self.project / "answer.txt").read_text(), "42\n")
        self.assertEqual(self.sessions(), [])

    def test_NoOnTheTerminalKeepsTheSession(self):
        # CONFORMS("R-AGENT-6")
        status, shown = self.on_terminal(self.command, [("[y/N]", "n\n")])
        self.assertEqual(status, 7, shown)
        self.assertFalse((self.project / "answer.txt").exists())
        self.assertEqual(len(self.sessions()), 1)

    def test_ProjectFileCountsOnlyWithTrust(self):
        with open(self.policy()) as policy:
            text = policy.read()
        (self.project / "caisson.toml").write_text(text + '[environment.set]\nPROJECT_FILE = "used"\n')
        command = [harness.CAISSON, "agent", "--api-ca", self.authority, "--", "claude"]
        done = self.run_program(*command)
        self.assertIn("needs your consent", done.stderr)
        self.assertNotIn("PROJECT_FILE", done.stdout)
        done = self.run_program(*command[:2], "--trust", *command[2:])
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("PROJECT_FILE=used", done.stdout)
        self.assertIn("--trust on the command line", self.caisson("audit", "show", "--json").stdout)

    def test_KeyIsNeverPassed(self):
        command = [*self.command[:2], "--env", "ANTHROPIC_API_KEY", *self.command[2:]]
        self.assertEqual(self.run_program(*command).returncode, 125)
        for other in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN=x", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY",
                      "CODEX_API_KEY", "GROQ_API_KEY"):
            refused = self.run_program(*self.command[:2], "--env", other, *self.command[2:])
            self.assertEqual(refused.returncode, 125, other)
            self.assertIn("would be able to read the key", refused.stderr)
        for secret in ("user:canary@" + harness.API_HOST, harness.API_HOST + "/v1?key=canary", harness.API_HOST + "/#canary"):
            self.environment["ANTHROPIC_BASE_URL"] = "https://" + secret
            refused = self.run_program(*self.command)
            self.assertEqual(refused.returncode, 125, secret)
            self.assertIn("ANTHROPIC_BASE_URL", refused.stderr)
            self.assertNotIn("canary", refused.stderr)
        self.environment["ANTHROPIC_BASE_URL"] = "http://" + harness.API_HOST
        refused = self.run_program(*self.command)
        self.assertEqual(refused.returncode, 125)
        self.assertIn("TLS", refused.stderr)
        self.assertEqual(self.sessions(), [])

    def test_LinkedConfigurationIsNotCopied(self):
        real = self.home / "dotfiles"
        (real / "commands").mkdir(parents=True)
        (real / "settings.json").write_text('{"model": "canary-model"}')
        (real / "commands" / "a.md").write_text("canary-command\n")
        (self.home / ".claude").symlink_to("dotfiles")
        (self.scratch / "bin" / "claude").unlink()
        (self.scratch / "bin" / "claude").write_text("#!/bin/sh\ngrep -r canary ~/.claude\n")
        (self.scratch / "bin" / "claude").chmod(0o755)
        done = self.run_program(*self.command)
        self.assertNotIn("canary", done.stdout)
        self.assertEqual(done.stderr.count("not copied: .claude: it is a link"), 1, done.stderr)

    def test_UntrustedServerGetsNoKey(self):
        # CONFORMS("R-AGENT-2")
        self.command[self.command.index("--api-ca") + 1] = os.environ["CAISSON_TEST_INTERNET"] + "/ca.pem"
        done = self.run_program(*self.command)
        self.assertNotIn("model: True", done.stdout)
        self.assertEqual(self.requests(), [])

    def test_UnknownAgentNamesItsApi(self):
        (self.scratch / "bin" / "claude").rename(self.scratch / "bin" / "my-agent")
        self.command[-1] = "my-agent"
        self.assertIn("--api", self.run_program(*self.command).stderr)
        command = [*self.command[:2], "--api", "anthropic", *self.command[2:]]
        self.assertIn("model: True", self.run_program(*command).stdout)
        command[3] = "unheard-of"
        self.assertEqual(self.run_program(*command).returncode, 125)

    def test_SessionWithoutChangesIsRemoved(self):
        done = self.caisson("agent", "--policy", self.policy(), "--", "sh", "-c", "exit 5")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(self.sessions(), [])


if __name__ == "__main__":
    harness.main()
