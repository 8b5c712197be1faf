#include "network/session_prompt.h"

namespace caisson::test {

void SessionPrompt::SetUp() {
  NetworkTest::SetUp();
  home_ = files.makeDir("home", 0700);
  id_ = createSession();
}

void SessionPrompt::TearDown() {
  for (const std::string& id : made_) (void)caisson({"session", "destroy", id});
}

std::string SessionPrompt::createSession() { return createSession(policyFor({"example.org"}, "")); }

std::string SessionPrompt::createSession(const std::string& policy) {
  const RunOutput made = caisson({"session", "create", "--policy", policy, "--workspace", ":none"});
  EXPECT_EQ(made.exit_status, 0) << made.describe();
  made_.push_back(made.out.substr(0, made.out.find('\n')));
  return made_.back();
}

std::string SessionPrompt::createOfflineSession() {
  return createSession(files.write("offline.toml", "extends = 'bash'\n[network]\ndns_servers = ['93.184.0.2']\n"));
}

RunOutput SessionPrompt::caisson(const std::vector<std::string>& words) const {
  RunOptions how;
  how.cwd = files.path();
  how.env["CAISSON_HOME"] = home_;
  return runCaisson(words, how);
}

RunOutput SessionPrompt::exec(const std::string& script, const std::vector<std::string>& options) const {
  std::vector<std::string> words{"session", "exec", id_};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "bash", "-c", script});
  return caisson(words);
}

std::unique_ptr<Terminal> SessionPrompt::start(const std::string& script, const std::string& id,
                                               const std::vector<std::string>& options) const {
  std::vector<std::string> words{
      "/usr/bin/env", "CAISSON_HOME=" + home_, "TERM=xterm", caissonBinary(), "session", "exec", id};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "bash", "-c", script});
  return std::make_unique<Terminal>(words, files.path());
}

void SessionPrompt::background(const std::string& name, const std::string& script) const {
  const RunOutput started =
      caisson({"session", "exec", id_, "--background", "--", "bash", "-c",
               "SECONDS=0; (" + script + ") >/tmp/" + name + ".new 2>&1; echo over $SECONDS >>/tmp/" + name +
                   ".new; mv /tmp/" + name + ".new /tmp/" + name});
  EXPECT_EQ(started.exit_status, 0) << started.describe();
}

std::string SessionPrompt::outputOf(const std::string& name) const {
  std::string text;
  eventually([&] {
    const RunOutput output = exec("cat /tmp/" + name);
    text = output.out;
    return output.exit_status == 0;
  });
  return text;
}

}  // namespace caisson::test
