// One example of each shape.
#include "policy/import/import.h"
#include "policy/decode/syntax.h"
#include "support/conforms.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace caisson::policy {

namespace {

Imported imported(std::string_view text, Format format) {
  auto document = readText(text, format, "example");
  EXPECT_TRUE(document) << document.error().message();
  auto result = importPolicy(*document);
  EXPECT_TRUE(result) << result.error().message();
  return result ? *result : Imported{};
}

std::string refusal(std::string_view text, Format format) {
  auto document = readText(text, format, "example");
  EXPECT_TRUE(document) << document.error().message();
  const auto result = importPolicy(*document);
  return result ? "" : result.error().message();
}

bool notes(const Imported& result, ImportNote::Kind kind, std::string_view key, std::string_view part = "") {
  return std::ranges::any_of(result.notes, [&](const ImportNote& note) {
    return note.kind == kind && note.key.ends_with(key) && note.text.find(part) != std::string::npos;
  });
}

using NoteKind = ImportNote::Kind;

}  // namespace

TEST(Import, AgentJsonKeepsNetworkAndLimits) {
  CONFORMS("R-POLICY-6");
  const Imported result = imported(R"({
  "sandbox": {
    "bash": {
      "defaultNetwork": "none",
      "proxyAllowlist": ["*.company.com", "internal-registry.local", "*.corp.internal"],
      "resources": {"memory": "1g", "timeout": 300000}
    },
    "images": {"default": "meao-sandbox:latest", "node": "meao-sandbox-node:latest", "python": "meao-sandbox-python:latest"}
  }
})",
                                   Format::json);
  EXPECT_EQ(result.shape, "agent");
  EXPECT_EQ(result.policy.network.mode, NetworkMode::none);
  EXPECT_EQ(result.policy.network.allowed_hosts,
            (std::vector<std::string>{".company.com", "internal-registry.local", ".corp.internal"}));
  EXPECT_EQ(result.policy.network.private_hosts, std::vector<std::string>{"internal-registry.local"});
  EXPECT_EQ(result.policy.resources.memory, 1 * kGiB);
  EXPECT_EQ(result.policy.resources.wall_seconds, 300);
  EXPECT_TRUE(notes(result, NoteKind::lossy, "sandbox.images"));
  EXPECT_TRUE(notes(result, NoteKind::widening, "proxyAllowlist", "internal-registry.local"));
  EXPECT_TRUE(notes(result, NoteKind::lossy, "proxyAllowlist", "*.corp.internal"));
  EXPECT_TRUE(notes(imported(R"({"sandbox":{"bash":{"defaultNetwork":"host"}}})", Format::json), NoteKind::unsafe,
                    "defaultNetwork"));
}

TEST(Import, ComposeFileIsImportedWithoutItsUnconfinedSeccomp) {
  CONFORMS("R-POLICY-6");
  const Imported result = imported(R"(version: '3.8'
services:
  sandbox:
    image: meao-sandbox:latest
    network_mode: none
    deploy:
      resources:
        limits:
          cpus: '1.0'
          memory: 512M
        reservations:
          memory: 64M
    cap_drop:
      - ALL
    read_only: true
    security_opt:
      - no-new-privileges:true
      - seccomp:unconfined
    pids_limit: 100
    ulimits:
      nofile:
        soft: 1024
        hard: 4096
      nproc:
        soft: 100
        hard: 200
    volumes:
      - type: bind
        source: ${WORKSPACE}
        target: /workspace
        read_only: false
    tmpfs:
      - /tmp:size=100M,mode=1777
      - /var/tmp:size=50M,mode=1777
    user: "1000:1000"
    working_dir: /workspace
    hostname: sandbox
    ipc: private
    pid: container
)",
                                   Format::yaml);
  EXPECT_TRUE(notes(result, NoteKind::unsafe, "security_opt", "seccomp:unconfined"));
  EXPECT_EQ(result.policy.syscalls.mode, SyscallMode::allowlist);
  EXPECT_FALSE(result.policy.syscalls.names);
  EXPECT_EQ(result.policy.resources.memory, 512 * kMiB);
  EXPECT_EQ(result.policy.resources.memory_reservation, 64 * kMiB);
  EXPECT_EQ(result.policy.process.max_processes, 100U);
  EXPECT_EQ(result.policy.resources.open_files, 1024U);
}

TEST(Import, ASeccompProfileOfAContainerIsKept) {
  CONFORMS("R-POLICY-6");
  const Imported result = imported(
      "services:\n  sandbox:\n    image: x\n    security_opt:\n      - seccomp:/etc/profile.json\n"
      "      - apparmor:some-profile\n",
      Format::yaml);
  EXPECT_EQ(result.policy.syscalls.oci_profile, "/etc/profile.json");
  EXPECT_EQ(result.policy.isolation.apparmor_profile, "some-profile");
}

TEST(Import, ShellTomlBridgeBecomesProxy) {
  CONFORMS("R-POLICY-7");
  const Imported result = imported(R"(
[sandbox]
image = "ash-sandbox:latest"
timeout = 60
memory_limit = "512m"
cpu_limit = 1.0
runtime = "runc"
network_mode = "bridge"
dns_servers = ["192.0.2.1", "192.0.2.2"]
http_proxy = "http://localhost:8888"
workspace_access = "rw"
)",
                                   Format::toml);
  EXPECT_EQ(result.shape, "shell-toml");
  EXPECT_EQ(result.policy.network.mode, NetworkMode::proxy);
  EXPECT_EQ(result.policy.network.allowed_hosts, std::vector<std::string>{"*"});
  EXPECT_EQ(result.policy.network.dns_servers.size(), 2U);
  EXPECT_EQ(result.policy.network.upstream_proxy, "http://localhost:8888");
  EXPECT_EQ(result.policy.filesystem.workspace.mode, WorkspaceMode::rw);
  EXPECT_EQ(result.policy.resources.wall_seconds, 60);
  EXPECT_TRUE(notes(result, NoteKind::widening, "network_mode", "bridge"));
  EXPECT_TRUE(notes(result, NoteKind::widening, "dns_servers", "192.0.2.2"));
  EXPECT_TRUE(notes(result, NoteKind::widening, "http_proxy", "localhost:8888"));
  EXPECT_TRUE(notes(result, NoteKind::widening, "workspace_access"));
  EXPECT_TRUE(notes(result, NoteKind::lossy, "runtime"));
}

TEST(Import, DeclaredPolicyKeepsLimitsAndSyscalls) {
  CONFORMS("R-POLICY-8");
  const Imported result = imported(R"({
  "isolationLevel": "LEVEL_2",
  "filesystem": {
    "rootPath": "/var/sandbox/tool-12345",
    "readOnlyPaths": ["/usr", "/lib", "/lib64"],
    "readWritePaths": ["/tmp", "/var/tmp"],
    "deniedPaths": ["/proc", "/sys", "/dev"],
    "maxFileSize": 10485760,
    "maxTotalSize": 104857600
  },
  "process": {"maxProcesses": 10, "allowFork": true, "allowExec": false, "allowedExecutables": []},
  "network": {"allowNetwork": false, "allowedHosts": [], "allowedPorts": [], "maxConnections": 0},
  "resources": {"maxCPU": 5000, "maxMemory": 52428800, "maxFileDescriptors": 100, "maxThreads": 10},
  "syscalls": {
    "mode": "WHITELIST",
    "syscalls": ["read", "write", "open", "close", "stat", "fstat", "lstat", "mmap", "munmap", "brk", "exit", "exit_group"]
  }
})",
                                   Format::json);
  EXPECT_EQ(result.shape, "declared-policy");
  EXPECT_EQ(result.policy.isolation.level, Level::full);
  EXPECT_EQ(result.policy.filesystem.max_file_size, 10485760U);
  EXPECT_EQ(result.policy.filesystem.max_total_size, 104857600U);
  EXPECT_EQ(result.policy.process.max_processes, 10U);
  EXPECT_FALSE(result.policy.process.allow_exec);
  EXPECT_FALSE(result.policy.process.allowed_executables);
  EXPECT_EQ(result.policy.resources.cpu_seconds, 5);
  EXPECT_EQ(result.policy.resources.memory, 52428800U);
  EXPECT_EQ(result.policy.resources.threads, 10U);
  EXPECT_TRUE(notes(result, NoteKind::lossy, "deniedPaths", "/proc"));
  EXPECT_TRUE(notes(result, NoteKind::widening, "syscalls.syscalls"));
  EXPECT_TRUE(notes(imported(R"({"isolationLevel":"LEVEL_0"})", Format::json), NoteKind::unsafe, "isolationLevel"));
}

/// Every part that a `cargo` file may have.
constexpr std::string_view kCargoFile = R"(
directory_permissions:
  workspace: "ro"
  cargo_home: "rw"
  target: "rw"
  logs: "wo"
  metadata: "rw"
size_limits:
  total_workspace: "10GB"
  target_directory: "5GB"
  log_files: "100MB"
  temp_files: "1GB"
process_limits:
  cpu_time: "300s"
  wall_time: "600s"
  memory: "512MB"
  processes: 25
  threads: 50
  file_descriptors: 500
network_allowlist:
  - "registry.example"
  - "index.registry.example"
  - "code.example"
  - "api.code.example"
  - "raw.code.example"
blocked_protocols:
  - "ftp"
  - "ssh"
  - "telnet"
  - "smtp"
port_restrictions:
  allowed_ports: [80, 443]
  blocked_ranges: ["1-1023", "8080-8090"]
blocked_paths:
  - "/etc"
  - "/usr/bin"
  - "/home/*/.*"
  - "C:/Windows"
execution_policy:
  allowed_executables:
    - "cargo"
    - "rustc"
    - "rustup"
    - "git"
  blocked_executables:
    - "sh"
    - "bash"
    - "powershell"
    - "cmd"
    - "python"
    - "node"
  command_validation:
    - regex: "^cargo\\s+(build|check|test|clean|doc)\\s"
      description: "Basic cargo commands"
    - regex: "^cargo\\s+--version$"
      description: "Version check"
sandbox_config:
  resource_limits:
    memory_mb: 2048
    cpu_seconds: 300
    wall_seconds: 600
    processes: 50
    threads: 100
    files: 1000
  file_system:
    workspace_size_mb: 10240
    target_size_mb: 5120
    log_size_mb: 100
    temp_size_mb: 1024
  network:
    enabled: true
    allowlist:
      - "registry.example"
      - "code.example"
    ports: [80, 443]
  security:
    strict_mode: true
    audit_logging: true
    block_shell_access: true
)";

TEST(Import, CargoLimitsAndCeilingsAreKept) {
  CONFORMS("R-POLICY-9");
  const Imported result = imported(kCargoFile, Format::yaml);
  EXPECT_EQ(result.shape, "cargo");
  const Policy& policy = result.policy;
  EXPECT_EQ(policy.resources.memory, 512 * kMiB);
  EXPECT_EQ(policy.resources.cpu_seconds, 300);
  EXPECT_EQ(policy.resources.wall_seconds, 600);
  EXPECT_EQ(policy.process.max_processes, 25U);
  EXPECT_EQ(policy.resources.threads, 50U);
  EXPECT_EQ(policy.resources.open_files, 500U);
  EXPECT_EQ(result.extra_ceilings, (std::vector<std::string>{"memory = 2147483648", "wall_seconds = 600",
                                                             "processes = 50", "open_files = 1000"}));
}

TEST(Import, CargoNetworkAllowlistUsesProxy) {
  CONFORMS("R-POLICY-9");
  const Policy policy = imported(kCargoFile, Format::yaml).policy;
  EXPECT_EQ(policy.network.mode, NetworkMode::proxy);
  EXPECT_EQ(policy.network.allowed_hosts.size(), 5U);
  EXPECT_EQ(policy.network.allowed_ports, (std::vector<std::string>{"80", "443"}));
  EXPECT_EQ(policy.network.denied_ports, (std::vector<std::string>{"1-1023", "8080-8090"}));
  EXPECT_FALSE(policy.environment.set.contains("CARGO_NET_OFFLINE")) << "cargo goes online with the network";
}

TEST(Import, CargoExecutableListsAndCommandPatternsAreKept) {
  CONFORMS("R-POLICY-9");
  const Policy policy = imported(kCargoFile, Format::yaml).policy;
  EXPECT_EQ(policy.commands.allowed_patterns->size(), 2U);
  EXPECT_TRUE(std::ranges::count(policy.process.blocked_executables, "powershell"));
  EXPECT_TRUE(std::ranges::count(policy.process.blocked_executables, "zsh")) << "the profile's own list stays";
}

TEST(Import, CargoPathsThatCannotBeImportedAreReported) {
  CONFORMS("R-POLICY-9");
  const Imported result = imported(kCargoFile, Format::yaml);
  EXPECT_TRUE(notes(result, NoteKind::lossy, "directory_permissions", "logs"));
  EXPECT_TRUE(notes(result, NoteKind::lossy, "blocked_paths", "C:/Windows"));
  EXPECT_TRUE(notes(result, NoteKind::lossy, "blocked_paths", "/usr/bin is shown read-only"));
}

/// Sizes of directories come from sandbox_config.file_system; size_limits wins over it.
TEST(Import, CargoSizesAreKept) {
  CONFORMS("R-POLICY-9");
  const auto sizeOf = [](const Imported& result, std::string_view path) {
    const auto found = std::ranges::find(result.policy.filesystem.tmpfs, path, &Tmpfs::path);
    return found == result.policy.filesystem.tmpfs.end() ? 0 : found->size / kMiB;
  };
  const std::string config =
      "sandbox_config:\n  file_system:\n    workspace_size_mb: 10240\n    target_size_mb: 2000\n    log_size_mb: 50\n"
      "    temp_size_mb: 200\n";
  const Imported alone = imported(config, Format::yaml);
  EXPECT_EQ(sizeOf(alone, "/target"), 2000U);
  EXPECT_EQ(sizeOf(alone, "/logs"), 50U);
  EXPECT_EQ(sizeOf(alone, "/tmp"), 200U);
  EXPECT_EQ(alone.policy.network.allowed_hosts, std::vector<std::string>{"preset:cargo"}) << "cargo is offline";
  const Imported both = imported(config + "size_limits:\n  target_directory: \"3000MiB\"\n", Format::yaml);
  EXPECT_EQ(sizeOf(both, "/target"), 3000U);
  EXPECT_EQ(sizeOf(both, "/logs"), 50U);
  for (const char* wrong : {"0", "-1", "9223372036854775807"}) {
    EXPECT_NE(refusal("sandbox_config:\n  file_system:\n    log_size_mb: " + std::string(wrong) + "\n", Format::yaml)
                  .find("log_size_mb"),
              std::string::npos)
        << wrong;
  }
}

TEST(Import, NothingIsDroppedInSilence) {
  EXPECT_NE(
      refusal(R"({"sandbox":{"bash":{"defaultNetwork":"none","privileged":true}}})", Format::json).find("privileged"),
      std::string::npos);
  EXPECT_NE(refusal("[sandbox]\ntimeout = true\n", Format::toml).find("timeout"), std::string::npos);
  EXPECT_NE(refusal("[sandbox]\nmemory_limit = '900g'\n", Format::toml).find("ceiling"), std::string::npos);
  EXPECT_NE(refusal("[sandbox]\nnetwork_mode = 'overlay'\n", Format::toml), "");
  EXPECT_NE(refusal("name = 'x'\n", Format::toml).find("none of the shapes"), std::string::npos);
  EXPECT_NE(refusal("[sandbox]\ntimeout = 60\n'sandbox.image' = 'x'\n", Format::toml).find("sandbox.image"),
            std::string::npos);
  EXPECT_NE(refusal("'sandbox.image' = 'x'\n[sandbox]\ntimeout = 60\n", Format::toml).find("sandbox.image"),
            std::string::npos);
  for (const std::string_view rules : {R"("^cargo")", R"(["^cargo"])", R"([{"pattern":"^cargo"}])",
                                       R"([{"regex":"^cargo","unless":"x"}])", R"([{"regex":"("}])"}) {
    const std::string text = R"({"execution_policy":{"command_validation":)" + std::string(rules) + "}}";
    EXPECT_NE(refusal(text, Format::json).find("command_validation"), std::string::npos) << text;
  }
  EXPECT_NE(refusal(R"({"isolationLevel":"LEVEL_2","syscalls":{"mode":"ALL"}})", Format::json).find("syscalls.mode"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"isolationLevel":"LEVEL_2","syscalls":{"syscalls":["read"]}})", Format::json), "");
  EXPECT_NE(refusal(R"({"isolationLevel":"LEVEL_9"})", Format::json), "");
  EXPECT_NE(refusal(R"({"isolationLevel":"LEVEL_2","filesystem":{"readWritePaths":["/proc/1"]}})", Format::json), "");
}

TEST(Import, NumbersThatWouldOverflowAreRefused) {
  const std::string most = "9223372036854775807";
  EXPECT_NE(refusal("process_limits:\n  processes: " + most + "\n  threads: " + most + "\n", Format::yaml), "");
  EXPECT_NE(
      refusal("sandbox_config:\n  resource_limits:\n    memory_mb: " + most + "\n", Format::yaml).find("too large"),
      std::string::npos);
}

TEST(Import, AnEmptyListDoesNotBecomeEverything) {
  const Imported result =
      imported(R"({"isolationLevel":"LEVEL_2","network":{"allowNetwork":true,"allowedHosts":[],"allowedPorts":[]}})",
               Format::json);
  EXPECT_TRUE(result.policy.network.allowed_hosts.empty());
  EXPECT_TRUE(notes(result, NoteKind::lossy, "allowedHosts", "none"));
  EXPECT_TRUE(notes(result, NoteKind::lossy, "allowedPorts", "none"));
}

TEST(Import, SrtSettings) {
  CONFORMS("R-POLICY-18");
  const Imported result = imported(R"({
  "network": {"allowedDomains": ["github.com", "*.npmjs.org:443", "localhost"], "deniedDomains": ["evil.example"],
              "allowUnixSockets": ["/run/docker.sock"], "allowLocalBinding": true},
  "filesystem": {"denyRead": ["~/.ssh", "secrets"], "allowWrite": [".", "/tmp", "/srv/cache", "/srv/state", "/"],
                 "denyWrite": ["Makefile", "vendor/", "lib/**", "/srv/state/fixed"]},
  "enableWeakerNestedSandbox": true
})",
                                   Format::json);
  EXPECT_EQ(result.shape, "srt");
  EXPECT_EQ(result.policy.network.mode, NetworkMode::proxy);
  EXPECT_EQ(result.policy.network.allowed_hosts, (std::vector<std::string>{"github.com", "*.npmjs.org:443"}));
  EXPECT_EQ(result.policy.network.denied_hosts, std::vector<std::string>{"evil.example"});
  EXPECT_EQ(result.policy.filesystem.workspace.mode, WorkspaceMode::rw);
  EXPECT_EQ(result.policy.filesystem.read_write, std::vector<std::string>{"/srv/cache"});
  EXPECT_EQ(result.policy.filesystem.read_only, std::vector<std::string>{"/srv/state"}) << "a part of it is read-only";
  EXPECT_EQ(result.policy.filesystem.denied,
            (std::vector<std::string>{expandHome("~/.ssh").value_or(""), "/workspace/secrets"}));
  EXPECT_EQ(result.policy.filesystem.workspace.protected_files,
            (std::vector<std::string>{"Makefile", "Makefile/", "vendor/", "lib/"}));
  for (const char* key : {"allowedDomains", "allowUnixSockets", "allowWrite", "denyWrite", "enableWeakerNestedSandbox"})
    EXPECT_TRUE(notes(result, NoteKind::unsafe, key)) << key;
  EXPECT_TRUE(notes(result, NoteKind::widening, "allowWrite", "changed directly"));
}

TEST(Import, SrtDenialsWinOverWhatIsShown) {
  const Imported result = imported(R"({"network": {"allowedDomains": []}, "filesystem": {
      "allowRead": ["~/.ssh", "~/.config", "/srv/read"],
      "allowWrite": [".", "/data/x", "/data/y/z", "/srv/a", "/srv/a/b", "~/.bashrc", "~/bin", "~/.aws//sub"],
      "denyWrite": ["/data", "/srv/a/b/c"], "denyRead": ["/srv/read/key", "/usr/local/private"]}})",
                                   Format::json);
  EXPECT_TRUE(result.policy.filesystem.read_write.empty());
  const std::string home = expandHome("~").value_or("");
  EXPECT_EQ(result.policy.filesystem.read_only,
            (std::vector<std::string>{home + "/.bashrc", home + "/bin", "/srv/read", "/data/x", "/data/y/z", "/srv/a",
                                      "/srv/a/b"}));
  EXPECT_EQ(result.policy.filesystem.denied, (std::vector<std::string>{"/srv/read/key", "/usr/local/private"}));
  for (const char* path : {"~/.ssh", "~/.config", "~/.aws//sub"}) {
    EXPECT_TRUE(notes(result, NoteKind::unsafe, "", path)) << path;
  }
  const Imported hidden = imported(R"({"network": {"allowedDomains": []}, "filesystem": {"allowWrite": ["."],
                                       "denyRead": ["."]}})",
                                   Format::json);
  EXPECT_EQ(hidden.policy.filesystem.workspace.mode, WorkspaceMode::none);
}

TEST(Import, SrtSettingsAllowNothingThatIsNotListed) {
  const Imported result = imported(R"({"network": {"allowedDomains": [], "deniedDomains": []},
                                       "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}})",
                                   Format::json);
  EXPECT_EQ(result.policy.network.mode, NetworkMode::none);
  EXPECT_EQ(result.policy.filesystem.workspace.mode, WorkspaceMode::ro);
  EXPECT_NE(refusal(R"({"network": {"allowedDomains": [], "allowedDomain": ["x.example"]}})", Format::json), "");
}

TEST(Import, SrtRulesOfOlderSettings) {
  const Imported result = imported(
      R"js({"permissions": {"allow": ["WebFetch(domain:example.org)", "Edit(.)", "Bash(ls)"], "deny": ["Read(keys/**)"]}})js",
      Format::json);
  EXPECT_EQ(result.policy.network.allowed_hosts, std::vector<std::string>{"example.org"});
  EXPECT_EQ(result.policy.filesystem.workspace.mode, WorkspaceMode::rw);
  EXPECT_EQ(result.policy.filesystem.denied, std::vector<std::string>{"/workspace/keys"});
  EXPECT_TRUE(notes(result, NoteKind::lossy, "permissions.allow", "Bash(ls)"));
}

TEST(Import, Devcontainer) {
  CONFORMS("R-POLICY-18");
  const Imported result = imported(withoutComments(R"({
  // a comment, "quoted"
  "name": "app", "image": "debian:12", /* two
  lines */ "containerEnv": {"CI": "1", "TOKEN": "${localEnv:TOKEN}", "P": "${containerEnv:PATH}"},
  "mounts": ["source=/srv/data,target=/data,type=bind,readonly", {"source": "/srv/out", "target": "/srv/out", "type": "bind"},
             {"source": "/srv/more", "target": "/srv/more", "type": "bind", "readonly": true},
             "source=${localEnv:HOME}/.local/bin,target=/bin2,type=bind", "source=${localEnv:HOME}/.config//gcloud,target=/g,type=bind",
             "source=/var/run/docker.sock,target=/var/run/docker.sock,type=bind",
             "source=${localEnv:HOME}/.ssh,target=/root/.ssh,type=bind", "source=cache,target=/cache,type=volume"],
  "runArgs": ["--cap-add=SYS_PTRACE", "--memory", "1g", "--cpus=1.5", "--pids-limit=200", "--network=host", "-e", "A=b", "--init"],
  "forwardPorts": [3000, "db:5432"], "privileged": true, "capAdd": ["NET_ADMIN"],
  "securityOpt": ["seccomp=unconfined"], "initializeCommand": "make", "postCreateCommand": "npm ci",
  "features": {"ghcr.io/devcontainers/features/node:1": {}}, "customizations": {"vscode": {}},
})"),
                                   Format::json);
  EXPECT_EQ(result.shape, "devcontainer");
  EXPECT_EQ(result.policy.environment.set, (std::map<std::string, std::string>{{"CI", "1"}, {"A", "b"}}));
  EXPECT_EQ(result.policy.environment.pass.back(), "TOKEN");
  EXPECT_EQ(result.policy.filesystem.read_only,
            (std::vector<std::string>{"/srv/data", "/srv/more", expandHome("~/.local/bin").value_or("")}));
  EXPECT_EQ(result.policy.filesystem.read_write, std::vector<std::string>{"/srv/out"});
  EXPECT_EQ(result.policy.resources.memory, kGiB);
  EXPECT_EQ(result.policy.resources.cpus, 1.5);
  EXPECT_EQ(result.policy.process.max_processes, 200U);
  EXPECT_EQ(result.policy.network.mode, NetworkMode::none);
  EXPECT_EQ(result.policy.network.exposed_ports, std::vector<std::string>{"3000"});
  EXPECT_TRUE(notes(result, NoteKind::unsafe, "mounts", "docker.sock"));
  for (const char* path : {".ssh", ".config//gcloud", ".local/bin"})
    EXPECT_TRUE(notes(result, NoteKind::unsafe, "mounts", path)) << path;
  EXPECT_TRUE(notes(result, NoteKind::unsafe, "runArgs", "SYS_PTRACE"));
  EXPECT_TRUE(notes(result, NoteKind::unsafe, "runArgs", "network host"));
  for (const char* key : {"privileged", "capAdd", "securityOpt", "initializeCommand"})
    EXPECT_TRUE(notes(result, NoteKind::unsafe, key)) << key;
  EXPECT_TRUE(notes(result, NoteKind::widening, "containerEnv", "TOKEN"));
  EXPECT_NE(refusal(R"({"image": "x", "privilegd": true})", Format::json), "");
}

TEST(Import, CommentsAreBlankedOutsideStringsOnly) {
  EXPECT_EQ(withoutComments("{\"a\": \"//x, ]\", // y\n \"b\": [1, ], /*\n*/}"),
            "{\"a\": \"//x, ]\",     \n \"b\": [1  ]    \n  }");
  EXPECT_EQ(withoutComments("{\"a\\\"//\": 1}"), "{\"a\\\"//\": 1}");
  EXPECT_EQ(withoutComments("/* open"), "/* open");
  EXPECT_EQ(withoutComments("1 // end"), "1       ");
}

}  // namespace caisson::policy
