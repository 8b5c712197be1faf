// Databases and a browser work unchanged in `full`: `make test-servers`. They use much of what the system-call filter
// and the covered files of /proc could break: shared memory, semaphores, forks that share memory, event loops, ioctls.
#include <dirent.h>
#include <gtest/gtest.h>

#include "functional/sandbox.h"

namespace caisson::test {
namespace {

class Servers : public SandboxTest {};

#define requireProgram(program) requireOrSkip(systemHas(program), std::string(program) + " is not installed below /usr")

/// The directory of the newest PostgreSQL's programs, or empty.
std::string postgresPrograms() {
  std::string newest;
  DIR* stream = opendir("/usr/lib/postgresql");
  if (stream == nullptr) return {};
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    if (name[0] >= '0' && name[0] <= '9' && (newest.empty() || std::stoi(name) > std::stoi(newest))) newest = name;
  }
  closedir(stream);
  return newest.empty() ? "" : "/usr/lib/postgresql/" + newest + "/bin";
}

void expectNoViolations(const RunOutput& output) {
  EXPECT_EQ(output.json()["violations"].size(), 0U) << output.json()["violations"].dump(1);
}

TEST_F(Servers, SqliteInWriteAheadMode) {
  requireProgram("sqlite3");
  const RunOutput output = script(R"sh(
    set -e
    sqlite3 data.db 'pragma journal_mode=wal; pragma mmap_size=1048576; create table t(n); insert into t values(6),(7);'
    for i in 1 2 3 4; do sqlite3 -cmd '.timeout 10000' data.db "insert into t values($i)" & done; wait
    sqlite3 data.db 'select count(*), sum(n) from t; pragma integrity_check;'
  )sh");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "wal\n1048576\n6|23\nok\n");
}

TEST_F(Servers, PostgresAnswersQueriesInParallel) {
  const std::string programs = postgresPrograms();
  requireOrSkip(!programs.empty(), "PostgreSQL is not installed below /usr");
  const RunOutput output = run({"--json", "--memory", "1G"}, {"bash", "-c", "PATH=" + programs + ":$PATH\n" + R"sh(
    set -e
    initdb -D /workspace/db -U sandbox -A trust >/dev/null
    pg_ctl -D /workspace/db -l /workspace/log -w -o '-k /tmp -c listen_addresses=127.0.0.1' start >/dev/null
    psql -h /tmp -d postgres -Atc "create table t as select generate_series(1, 200000) n; analyze t"
    psql -h 127.0.0.1 -d postgres -Atc \
      "set max_parallel_workers_per_gather=2; set parallel_setup_cost=0; set min_parallel_table_scan_size=0; \
       select sum(n) from t"
    pg_ctl -D /workspace/db -m fast -w stop >/dev/null
    echo stopped
  )sh"});
  EXPECT_EQ(output.json()["stdout"], "SELECT 200000\nANALYZE\nSET\nSET\nSET\n20000100000\nstopped\n")
      << output.describe();
  expectNoViolations(output);
}

TEST_F(Servers, RedisServesAndSavesInABackgroundProcess) {
  requireProgram("redis-server");
  const RunOutput output = run({"--json"}, {"bash", "-c", R"sh(
    set -e
    redis-server --port 6390 --unixsocket /tmp/r.sock --dir /tmp --save '' --daemonize yes --logfile /tmp/log >/dev/null
    for i in $(seq 100); do redis-cli -s /tmp/r.sock ping >/dev/null 2>&1 && break; sleep 0.05; done
    redis-cli -p 6390 set key value
    redis-cli -s /tmp/r.sock get key
    redis-cli -s /tmp/r.sock bgsave >/dev/null
    for i in $(seq 100); do test -s /tmp/dump.rdb && break; sleep 0.05; done
    head -c 5 /tmp/dump.rdb; echo
    redis-cli -s /tmp/r.sock shutdown nosave || true
  )sh"});
  EXPECT_EQ(output.json()["stdout"], "OK\nvalue\nREDIS\n") << output.describe();
  expectNoViolations(output);
}

/// Without its own sandbox, which needs namespaces.
TEST_F(Servers, ChromiumRendersAPage) {
  const std::string program = systemHas("chromium") ? "chromium" : "chromium-browser";
  requireProgram(program);
  const RunOutput output = run(
      {"--memory", "2G", "--pids", "500", "--timeout", "120s", "--ro", "/etc/chromium.d"},  // its wrapper reads that
      {program, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=/tmp/profile", "--dump-dom",
       "data:text/html,<p id=x></p><script>x.textContent=6*7</script>"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_NE(output.out.find("<p id=\"x\">42</p>"), std::string::npos) << output.describe();
}

}  // namespace
}  // namespace caisson::test
