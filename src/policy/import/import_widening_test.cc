// What an import makes wider is reported or refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "policy/import/import.h"

namespace caisson::policy {
namespace {

Imported importOf(std::string_view text, Format format) {
  const auto document = readText(text, format, "example");
  EXPECT_TRUE(document) << document.error().message();
  auto result = importPolicy(*document);
  EXPECT_TRUE(result) << result.error().message();
  return result ? *result : Imported{};
}

bool hasNote(const Imported& result, ImportNote::Kind kind, std::string_view key, std::string_view part = "") {
  return std::ranges::any_of(result.notes, [&](const ImportNote& note) {
    return note.kind == kind && note.key.ends_with(key) && note.text.find(part) != std::string::npos;
  });
}

TEST(ImportWidening, RefusesTheNetworkOfTheHost) {
  const Imported result = importOf("[sandbox]\nimage = 'x'\nnetwork_mode = 'host'\n", Format::toml);
  EXPECT_EQ(result.policy.network.mode, NetworkMode::none);
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "network_mode", "owner's approval"));
}

TEST(ImportWidening, ShowsNoHomeAndNoKeysOfOne) {
  const Imported result = importOf(R"({"isolationLevel": "LEVEL_2", "filesystem": {
      "readOnlyPaths": ["~/.ssh", "~", "/home/someone", "/home/someone/.aws/credentials", "/root", "/", "/opt/data"]}})",
                                   Format::json);
  EXPECT_EQ(result.policy.filesystem.read_only, std::vector<std::string>{"/opt/data"});
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "readOnlyPaths", "~/.ssh"));
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "readOnlyPaths", "/home/someone: a whole home"));
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::widening, "readOnlyPaths", "/opt/data"));
}

TEST(ImportWidening, WritesNoHomeAndNoSettingsOfHostPrograms) {
  const Imported result = importOf(R"({"isolationLevel": "LEVEL_2", "filesystem": {
      "readWritePaths": ["~/.ssh", "~", "/home/someone", "~/.config/fish", "~/.bashrc", "/opt/data"]}})",
                                   Format::json);
  EXPECT_EQ(result.policy.filesystem.read_write, std::vector<std::string>{"/opt/data"});
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "readWritePaths", "~/.ssh"));
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "readWritePaths", "/home/someone: a whole home"));
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "readWritePaths", "~/.bashrc is not writable"));
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::widening, "readWritePaths", "/opt/data"));
}

TEST(ImportWidening, ReportsEverythingThatIsWiderThanTheProfile) {
  const Imported shell = importOf("[sandbox]\nimage = 'x'\nmemory_limit = '1g'\ncpu_limit = 1.5\n", Format::toml);
  EXPECT_TRUE(hasNote(shell, ImportNote::Kind::widening, "sandbox.memory_limit", "resources.memory"));
  EXPECT_TRUE(hasNote(shell, ImportNote::Kind::widening, "sandbox.cpu_limit", "resources.cpus"));
  const Imported compose = importOf(
      "services:\n  sandbox:\n    image: x\n    pids_limit: 300\n    security_opt: [\"apparmor:unconfined\", "
      "\"seccomp:/etc/profile.json\"]\n",
      Format::yaml);
  EXPECT_TRUE(hasNote(compose, ImportNote::Kind::widening, "pids_limit", "process.max_processes"));
  EXPECT_TRUE(hasNote(compose, ImportNote::Kind::unsafe, "security_opt", "apparmor:unconfined"));
  EXPECT_TRUE(hasNote(compose, ImportNote::Kind::widening, "security_opt", "/etc/profile.json"));
  EXPECT_EQ(compose.policy.isolation.apparmor_profile, "");
}

struct ImportCase {
  ImportNote::Kind kind;
  const char* key;   ///< how the foreign key of the note ends
  const char* part;  ///< of the note's text
  const char* text;
};

constexpr auto kImportWider = ImportNote::Kind::widening, kImportUnsafe = ImportNote::Kind::unsafe;

/// A member of services.sandbox.
#define COMPOSE(member) "services:\n  sandbox:\n    image: x\n    " member "\n"
#define RFC(members) "{\"isolationLevel\": \"LEVEL_2\", " members "}"
#define SRT(members) "{\"network\": {\"allowedDomains\": []}, " members "}"
#define DEV(members) "{\"image\": \"x\", " members "}"

constexpr ImportCase kTomlCases[] = {
    {kImportWider, "sandbox.timeout", "resources.wall_seconds", "[sandbox]\ntimeout = 600\n"},
    {kImportWider, "sandbox.memory_limit", "resources.memory", "[sandbox]\nmemory_limit = '1g'\n"},
    {kImportWider, "sandbox.cpu_limit", "resources.cpus", "[sandbox]\ncpu_limit = 2\n"},
    {kImportWider, "sandbox.network_mode", "any public host", "[sandbox]\nnetwork_mode = 'bridge'\n"},
    {kImportWider, "sandbox.network_mode", "network.mode", "[sandbox]\nnetwork_mode = 'proxy'\n"},
    {kImportUnsafe, "sandbox.network_mode", "owner's approval", "[sandbox]\nnetwork_mode = 'host'\n"},
    {kImportWider, "sandbox.dns_servers", "192.0.2.1", "[sandbox]\ndns_servers = ['192.0.2.1']\n"},
    {kImportWider, "sandbox.http_proxy", "proxy:3128", "[sandbox]\nhttp_proxy = 'http://proxy:3128'\n"},
    {kImportWider, "sandbox.workspace_access", "changed directly", "[sandbox]\nworkspace_access = 'rw'\n"},
};

constexpr ImportCase kYamlCases[] = {
    {kImportUnsafe, "network_mode", "none", COMPOSE("network_mode: host")},
    {kImportWider, "limits.cpus", "resources.cpus",
     COMPOSE("deploy: {resources: {limits: {cpus: '2'}}}\n    pids_limit: 300")},
    {kImportWider, "pids_limit", "max_processes",
     COMPOSE("deploy: {resources: {limits: {cpus: '2'}}}\n    pids_limit: 300")},
    {kImportWider, "limits.memory", "resources.memory", COMPOSE("deploy: {resources: {limits: {memory: 1G}}}")},
    {kImportWider, "reservations.memory", "memory_reservation",
     COMPOSE("deploy: {resources: {reservations: {memory: 64M}}}")},
    {kImportWider, "nofile.soft", "resources.open_files", COMPOSE("ulimits: {nofile: {soft: 2048}}")},
    {kImportUnsafe, "security_opt", "every system call", COMPOSE("security_opt: ['seccomp=unconfined']")},
    {kImportUnsafe, "security_opt", "apparmor=unconfined", COMPOSE("security_opt: ['apparmor=unconfined']")},
    {kImportUnsafe, "security_opt", "label=disable", COMPOSE("security_opt: ['label=disable']")},
    {kImportUnsafe, "security_opt", "systempaths", COMPOSE("security_opt: ['systempaths=unconfined']")},
    {kImportUnsafe, "security_opt", "unmask", COMPOSE("security_opt: ['unmask=ALL']")},
    {kImportUnsafe, "security_opt", "no-new-privileges", COMPOSE("security_opt: ['no-new-privileges:false']")},
    {kImportWider, "security_opt", "some-profile", COMPOSE("security_opt: ['apparmor=some-profile']")},
    {kImportWider, "security_opt", "/etc/profile.json", COMPOSE("security_opt: ['seccomp=/etc/profile.json']")},
    {kImportWider, "tmpfs", "filesystem.tmpfs", COMPOSE("tmpfs: ['/tmp:size=500M']")},
    {kImportUnsafe, "volumes", "docker.sock", COMPOSE("volumes: ['/var/run/docker.sock:/var/run/docker.sock']")},
    {kImportUnsafe, "volumes", "the whole host", COMPOSE("volumes: [{type: bind, source: /, target: /host}]")},
    {kImportUnsafe, "user", "user sandbox", COMPOSE("user: root")},
    {kImportUnsafe, "user", "user sandbox", COMPOSE("user: 0")},
    {kImportUnsafe, "ipc", "private namespaces", COMPOSE("ipc: host")},
    {kImportUnsafe, "pid", "private namespaces", COMPOSE("pid: host")},
    {kImportUnsafe, "read_only", "read-only root", COMPOSE("read_only: false")},
    {kImportWider, "size_limits.target_directory", "filesystem.tmpfs", "size_limits: {target_directory: 20GB}\n"},
    {kImportWider, "file_system.temp_size_mb", "filesystem.tmpfs",
     "sandbox_config: {file_system: {temp_size_mb: 9000}}\n"},
    {kImportWider, "process_limits.cpu_time", "cpu_seconds", "process_limits: {cpu_time: 9000s}\n"},
    {kImportWider, "process_limits.threads", "resources.threads", "process_limits: {threads: 90, memory: 2048MB}\n"},
    {kImportWider, "process_limits.memory", "resources.memory", "process_limits: {threads: 90, memory: 2048MB}\n"},
    {kImportWider, "network_allowlist", "a.example", "network_allowlist: [a.example, '*.b.example']\n"},
    {kImportWider, "network_allowlist", "inside your network", "network_allowlist: [registry.internal]\n"},
    {kImportWider, "allowed_ports", "network.allowed_ports",
     "port_restrictions: {allowed_ports: [22]}\nnetwork_allowlist: []\n"},
    {kImportWider, "allowed_executables", "rustfmt", "execution_policy: {allowed_executables: [rustfmt]}\n"},
    {kImportWider, "command_validation", "allowed_patterns",
     "execution_policy: {command_validation: [{regex: '.*'}]}\n"},
    {kImportWider, "network.enabled", "egress filter", "sandbox_config: {network: {enabled: true}}\n"},
    {kImportUnsafe, "sandbox_config.security", "always so",
     "sandbox_config: {security: {block_shell_access: false}}\n"},
};

constexpr ImportCase kJsonCases[] = {
    {kImportWider, "defaultNetwork", "egress filter", R"({"sandbox": {"bash": {"defaultNetwork": "proxy"}}})"},
    {kImportWider, "proxyAllowlist", "a.example",
     R"({"sandbox": {"bash": {"proxyAllowlist": ["a.example", "*.b.example"]}}})"},
    {kImportWider, "resources.memory", "resources.memory", R"({"sandbox": {"bash": {"resources": {"memory": "2g"}}}})"},
    {kImportUnsafe, "isolationLevel", "LEVEL_0", R"({"isolationLevel": "LEVEL_0"})"},
    {kImportWider, "isolationLevel", "process", R"({"isolationLevel": "LEVEL_1"})"},
    {kImportUnsafe, "readOnlyPaths", "sockets",
     RFC(R"("filesystem": {"readOnlyPaths": ["/run/containerd/containerd.sock"]})")},
    {kImportUnsafe, "readWritePaths", "sockets", RFC(R"("filesystem": {"readWritePaths": ["/var/run"]})")},
    {kImportUnsafe, "readWritePaths", "/tmp/.X11-unix", RFC(R"("filesystem": {"readWritePaths": ["/tmp/.X11-unix"]})")},
    {kImportWider, "readOnlyPaths", "/home/x/.local",
     RFC(R"("filesystem": {"readOnlyPaths": ["/home/x/.local/share/app"]})")},
    {kImportWider, "maxFileSize", "max_file_size", RFC(R"("filesystem": {"maxFileSize": 99999999})")},
    {kImportWider, "maxTotalSize", "max_total_size", RFC(R"("filesystem": {"maxTotalSize": 999999999})")},
    {kImportWider, "maxProcesses", "max_processes", RFC(R"("process": {"maxProcesses": 50})")},
    {kImportWider, "allowExec", "allow_exec", RFC(R"("process": {"allowExec": true})")},
    {kImportWider, "allowNetwork", "egress filter", RFC(R"("network": {"allowNetwork": true})")},
    {kImportWider, "allowedHosts", "a.example",
     RFC(R"("network": {"allowedHosts": ["a.example"], "allowedPorts": [22]})")},
    {kImportWider, "allowedPorts", "22", RFC(R"("network": {"allowedHosts": ["a.example"], "allowedPorts": [22]})")},
    {kImportWider, "maxConnections", "max_connections", RFC(R"("network": {"maxConnections": 9})")},
    {kImportWider, "maxCPU", "cpu_seconds", RFC(R"("resources": {"maxCPU": 60000, "maxThreads": 90})")},
    {kImportWider, "maxThreads", "threads", RFC(R"("resources": {"maxCPU": 60000, "maxThreads": 90})")},
    {kImportWider, "maxMemory", "resources.memory", RFC(R"("resources": {"maxMemory": 999999999})")},
    {kImportWider, "maxFileDescriptors", "open_files", RFC(R"("resources": {"maxFileDescriptors": 900})")},
    {kImportWider, "syscalls.mode", "all calls but",
     RFC(R"("syscalls": {"mode": "BLACKLIST", "syscalls": ["ptrace"]})")},
    {kImportWider, "syscalls.syscalls", "sendto",
     RFC(R"("syscalls": {"mode": "WHITELIST", "syscalls": ["read", "sendto"]})")},
    {kImportWider, "permissions.allow", "egress filter",
     R"js({"permissions": {"allow": ["WebFetch(domain:a.example)"]}})js"},
    {kImportWider, "permissions.allow", "a.example",
     R"js({"permissions": {"allow": ["WebFetch(domain:a.example)"]}})js"},
    {kImportWider, "permissions.allow", "changed directly", R"js({"permissions": {"allow": ["Edit(.)"]}})js"},
    {kImportWider, "filesystem.allowWrite", "/srv/a", SRT(R"("filesystem": {"allowWrite": ["/srv/a"]})")},
    {kImportWider, "filesystem.allowRead", "/srv/a", SRT(R"("filesystem": {"allowRead": ["/srv/a"]})")},
    {kImportUnsafe, "filesystem.allowRead", "/home/bob", SRT(R"("filesystem": {"allowRead": ["/home/bob"]})")},
    {kImportUnsafe, "filesystem.allowWrite", "not writable",
     SRT(R"("filesystem": {"allowWrite": ["/home/bob/.bashrc"]})")},
    {kImportUnsafe, "filesystem.allowWrite", "sockets", SRT(R"("filesystem": {"allowWrite": ["/run/user/1000"]})")},
    {kImportUnsafe, "filesystem.denyRead", "patterns", SRT(R"("filesystem": {"denyRead": ["/srv/**/.env"]})")},
    {kImportUnsafe, "enableWeakerNestedSandbox", "", SRT(R"("enableWeakerNestedSandbox": true)")},
    {kImportUnsafe, "allowAllUnixSockets", "sockets",
     R"({"network": {"allowedDomains": [], "allowAllUnixSockets": true}})"},
    {kImportWider, "parentProxy.http", "learns",
     R"({"network": {"allowedDomains": [], "parentProxy": {"http": "http://proxy:3128"}}})"},
    {kImportWider, "containerEnv", "LD_PRELOAD", DEV(R"("containerEnv": {"LD_PRELOAD": "/workspace/x.so"})")},
    {kImportWider, "remoteEnv", "TOKEN", DEV(R"("remoteEnv": {"TOKEN": "${localEnv:TOKEN}"})")},
    {kImportUnsafe, "mounts", "sockets", DEV(R"("mounts": ["source=/run/user/1000/bus,target=/b,type=bind"])")},
    {kImportUnsafe, "mounts", "home directory", DEV(R"("mounts": ["source=/home,target=/h,type=bind"])")},
    {kImportWider, "mounts", "changed directly", DEV(R"("mounts": ["source=/srv/a,target=/srv/a,type=bind"])")},
    {kImportWider, "forwardPorts", "3000", DEV(R"("forwardPorts": [3000])")},
    {kImportWider, "appPort", "4000", DEV(R"("forwardPorts": [3000], "appPort": [4000])")},
    {kImportUnsafe, "privileged", "", DEV(R"("privileged": true)")},
    {kImportUnsafe, "capAdd", "", DEV(R"("capAdd": ["SYS_ADMIN"])")},
    {kImportUnsafe, "securityOpt", "apparmor", DEV(R"("securityOpt": ["apparmor=unconfined"])")},
    {kImportUnsafe, "securityOpt", "no-new-privileges", DEV(R"("securityOpt": ["no-new-privileges=false"])")},
    {kImportUnsafe, "remoteUser", "user sandbox", DEV(R"("remoteUser": "root")")},
    {kImportUnsafe, "containerUser", "user sandbox", DEV(R"("containerUser": "0:0")")},
    {kImportUnsafe, "initializeCommand", "", DEV(R"("initializeCommand": "make")")},
    {kImportUnsafe, "runArgs", "--privileged", DEV(R"("runArgs": ["--privileged"])")},
    {kImportUnsafe, "runArgs", "--device", DEV(R"("runArgs": ["--device=/dev/kvm"])")},
    {kImportUnsafe, "runArgs", "--gpus", DEV(R"("runArgs": ["--gpus", "all"])")},
    {kImportUnsafe, "runArgs", "--volumes-from", DEV(R"("runArgs": ["--volumes-from", "db"])")},
    {kImportUnsafe, "runArgs", "label=disable", DEV(R"("runArgs": ["--security-opt", "label=disable"])")},
    {kImportUnsafe, "runArgs", "seccomp", DEV(R"("runArgs": ["--security-opt=seccomp=unconfined"])")},
    {kImportUnsafe, "runArgs", "--pid", DEV(R"("runArgs": ["--pid=host"])")},
    {kImportUnsafe, "runArgs", "--cgroupns", DEV(R"("runArgs": ["--cgroupns", "host"])")},
    {kImportUnsafe, "runArgs", "--ipc", DEV(R"("runArgs": ["--ipc=container:db"])")},
    {kImportUnsafe, "runArgs", "user root", DEV(R"("runArgs": ["-u", "root"])")},
    {kImportUnsafe, "runArgs", "network container:db", DEV(R"("runArgs": ["--network=container:db"])")},
    {kImportWider, "runArgs", "resources.memory", DEV(R"("runArgs": ["--memory=2g", "--cpus=2", "--pids-limit=500"])")},
    {kImportWider, "runArgs", "resources.cpus", DEV(R"("runArgs": ["--memory=2g", "--cpus=2", "--pids-limit=500"])")},
    {kImportWider, "runArgs", "max_processes", DEV(R"("runArgs": ["--memory=2g", "--cpus=2", "--pids-limit=500"])")},
    {kImportWider, "runArgs", "variable A", DEV(R"("containerEnv": {"B": "c"}, "runArgs": ["-e", "A=b"])")},
};

#undef RFC
#undef SRT
#undef DEV

void expectNotes(std::span<const ImportCase> cases, Format format) {
  for (const ImportCase& one : cases) {
    SCOPED_TRACE(one.text);
    const Imported result = importOf(one.text, format);
    EXPECT_TRUE(hasNote(result, one.kind, one.key, one.part)) << one.key << ": " << one.part;
  }
}

TEST(ImportWidening, EachForeignKeyIsReportedOrRefused) {
  expectNotes(kTomlCases, Format::toml);
  expectNotes(kYamlCases, Format::yaml);
  expectNotes(kJsonCases, Format::json);
}

TEST(ImportWidening, RefusesPrivilegesOfAComposeFile) {
  for (const char* member : {"privileged: true", "cap_add: [ALL]", "devices: [/dev/kvm]", "environment: {A: b}",
                             "dns: [192.0.2.1]", "extra_hosts: ['a:192.0.2.1']", "userns_mode: host", "uts: host",
                             "cgroup: host", "group_add: [docker]", "volumes_from: [db]", "sysctls: {a: 1}"}) {
    const auto document = readText(COMPOSE("") "    " + std::string(member) + "\n", Format::yaml, "example");
    ASSERT_TRUE(document) << member;
    EXPECT_FALSE(importPolicy(*document)) << member;
  }
}

#undef COMPOSE

}  // namespace
}  // namespace caisson::policy
