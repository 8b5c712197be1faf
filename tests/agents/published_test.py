"""The published packages of agents (scripts/test_agents.sh installs them): Claude Code and Codex with the scripted model,
others as far as they come without one.

They run in the namespaces of tests/network/world.sh, so nothing leaves this machine.
"""
import json
import os
import pathlib

import harness

PACKAGES = pathlib.Path(os.environ.get("CAISSON_AGENT_PACKAGES", "/nonexistent"))
READS_EVERYTHING = ("echo begin; env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; "
                    "cat ~/.codex/auth.json ~/.claude.json ~/.claude/.credentials.json ~/.claude/settings.json "
                    "~/.codex/config.toml 2>/dev/null; echo end")
SCRIPT = ["pwd; echo made by a command > made.txt; exit 3", "cat made.txt; echo second >> made.txt", READS_EVERYTHING]


class Published(harness.AgentTest):
    def setUp(self):
        super().setUp()
        program = PACKAGES / "node_modules" / ".bin" / self.program
        if not program.exists():
            self.skipTest(f"{program} is missing; make test-agents installs it")
        (self.scratch / "bin" / self.program).symlink_to(program)

    def check_results(self):
        """Checks that every command ran, in one session, and that the key was not visible in it."""
        results = self.results()
        for text in (str(self.project), "made by a command", "begin", "end"):
            self.assertIn(text, results)
        self.assertIn("CAISSON=1", results)
        self.assertNotIn(harness.KEY, results)
        keys = {request["key"].removeprefix("Bearer ") for request in self.requests() if request.get("shell")}
        self.assertEqual(keys, {harness.KEY})

    def check_commit(self, *commit):
        self.assertFalse((self.project / "made.txt").exists())
        committed = self.caisson(*commit)
        self.assertEqual(committed.returncode, 0, committed.stderr)
        self.assertEqual((self.project / "made.txt").read_text(), "made by a command\nsecond\n")

    def whole(self, *command):
        """Runs the agent in a session. Its settings have a secret, without which it must start."""
        _, authority = self.server
        for name, text in self.settings.items():
            (self.home / name).parent.mkdir(exist_ok=True)
            (self.home / name).write_text(text)
        done = self.caisson("agent", "--policy", self.policy(), "--api-ca", authority, "--", self.program, *command)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.check_results()
        self.assertNotIn("canary", self.results())
        self.assertIn("arrives", self.results())
        self.assertIn("not copied: ", done.stderr)
        self.assertNotIn(harness.KEY, done.stdout + done.stderr)
        self.check_commit("session", "commit", self.sessions()[0]["id"])


class ClaudeCode(Published):
    program = "claude"
    prompt = ("-p", "do the script", "--allowedTools", "Bash", "--output-format", "json")
    settings = {".claude/settings.json": json.dumps({
        "permissions": {"allow": ["Bash(arrives:*)", "Bash(x --token canary-1)"]}, "env": {"SERVICE": "canary-2"},
        "apiKeyHelper": "echo canary-3", "cleanupPeriodDays": 20})}

    def test_ShellToolRunsInASession(self):
        self.start_outside()
        self.assertEqual(self.caisson("agent", "install", "claude-code", "--yes").returncode, 0)
        done = self.run_program(self.program, *self.prompt)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(json.loads(done.stdout)["permission_denials"], [])
        self.check_results()
        self.assertIn("Exit code 3", self.results())
        self.check_commit("agent", "commit")

    def start_outside(self):
        if os.geteuid() == 0:
            self.skipTest("run it as an ordinary user: as root, Claude Code 2.1.197 was seen to hang before its first "
                          "request, without caisson as well")
        self.environment.update(ANTHROPIC_BASE_URL=self.model(SCRIPT), CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1")

    def test_WithoutCaissonTheCommandIsBlocked(self):
        self.start_outside()
        self.assertEqual(self.caisson("agent", "install", "claude-code", "--yes").returncode, 0)
        (self.scratch / "bin" / "caisson").unlink()
        self.run_program(self.program, *self.prompt)
        self.assertGreater(len(self.requests()), 1)
        self.assertFalse((self.project / "made.txt").exists())

    def test_WholeAgentRunsInASession(self):
        self.server = self.model_with_tls(SCRIPT)
        self.environment["ANTHROPIC_BASE_URL"] = self.server[0]
        self.whole(*self.prompt)


class Codex(Published):
    program = "codex"
    # Codex's own sandbox cannot be created inside another one, and would prevent caisson from starting a session.
    prompt = ("exec", "--skip-git-repo-check", "--sandbox", "danger-full-access")
    settings = {".codex/config.toml": 'model_reasoning_effort = "low"\n[projects."/arrives"]\ntrust_level = "trusted"\n'
                '[mcp_servers.context7]\ncommand = "npx"\nargs = ["-y", "context7", "--api-key", "canary-1"]\n'
                '[shell_environment_policy]\ninherit = "all"\nset = { ANY = "canary-2" }\n'}

    def provider(self, address):
        return [f'model_providers.scripted={{name="scripted", base_url="{address}/v1", env_key="OPENAI_API_KEY", '
                'wire_api="responses"}', 'model_provider="scripted"', 'model="gpt-5"']

    def flags(self, address):
        return [word for setting in self.provider(address) for word in ("-c", setting)]

    def test_ShellToolRunsInASession(self):
        address = self.model(SCRIPT)
        installed = self.caisson("agent", "install", "codex", "--yes")
        self.assertEqual(installed.returncode, 0, installed.stderr)
        done = self.run_program(self.program, *self.prompt, "--dangerously-bypass-hook-trust", *self.flags(address),
                                "do the script")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.check_results()
        self.assertIn("exited with code 3", self.results())
        self.check_commit("agent", "commit")

    def test_WholeAgentRunsInASession(self):
        self.server = self.model_with_tls(SCRIPT)
        self.environment["OPENAI_BASE_URL"] = self.server[0]
        self.whole(*self.prompt, *self.flags(self.server[0]), "do the script")


SETTINGS_SERVERS = {"arrives": {"command": "sh", "args": ["-c", "true"]},
                    "secret": {"command": "sh", "args": ["-c", "true", "--api-key", "canary-1"]}}


class StartsWithoutSecrets(Published):
    """An agent for which the scripted model has no answers: it starts with its settings and lists what arrived."""
    program = path = ""
    settings = {}

    def test_StartsAndListsWhatArrives(self):
        (self.home / self.path).parent.mkdir(parents=True, exist_ok=True)
        (self.home / self.path).write_text(json.dumps(self.settings))
        done = self.caisson("agent", "--api", "openai", "--", self.program, "mcp", "list")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("arrives", done.stdout + done.stderr)
        self.assertIn(f"not copied: {self.path}: ", done.stderr)
        for canary in ("canary-1", "canary-2", harness.KEY):
            self.assertNotIn(canary, done.stdout + done.stderr)


class Gemini(StartsWithoutSecrets):
    program, path = "gemini", ".gemini/settings.json"
    settings = {"ui": {"theme": "Default"}, "mcpServers": SETTINGS_SERVERS}


class Qwen(StartsWithoutSecrets):
    program, path = "qwen", ".qwen/settings.json"
    settings = {"mcpServers": SETTINGS_SERVERS, "env": {"X": "canary-2"}}


class Copilot(StartsWithoutSecrets):
    program, path = "copilot", ".copilot/mcp-config.json"
    settings = {"mcpServers": {name: dict(one, type="local", tools=["*"]) for name, one in SETTINGS_SERVERS.items()}}


class Opencode(StartsWithoutSecrets):
    program, path = "opencode", ".config/opencode/opencode.json"
    settings = {"theme": "system", "provider": {"x": {"options": {"apiKey": "canary-2"}}},
                "mcp": {name: {"type": "local", "enabled": False, "command": [one["command"], *one["args"]]}
                        for name, one in SETTINGS_SERVERS.items()}}


del StartsWithoutSecrets  # unittest would run it


if __name__ == "__main__":
    harness.main()
