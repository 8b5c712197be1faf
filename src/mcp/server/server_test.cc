// The protocol over the fixture's features, without any transport.
#include "mcp/server/server.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <thread>

#include "mcp/conformance/fixture.h"
#include "mcp/server/features_testing.h"
#include "support/conforms.h"

namespace caisson::mcp {
namespace {

class Recorder final : public Channel {
 public:
  void send(const Json& message) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back(message);
    arrived_.notify_all();
  }
  /// Returns the first matching message, within a generous timeout.
  template <class Fits>
  Json await(Fits fits) {
    std::unique_lock lock(mutex_);
    Json found;
    arrived_.wait_for(lock, std::chrono::seconds(10), [&] {
      for (const Json& message : messages_)
        if (fits(message)) {
          found = message;
          return true;
        }
      return false;
    });
    return found;
  }
  Json answer(const Json& id) {
    return await([&](const Json& message) { return message.value("id", Json()) == id && !message.contains("method"); });
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return messages_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Json> messages_;
};

class McpServer : public testing::Test {
 protected:
  /// Like a transport whose client disconnected: breaks the reference cycle of unanswered calls and their client.
  void TearDown() override {
    server.endSubscriptions();
    client->cancelAll();
  }
  void send(Json message) {
    message["jsonrpc"] = "2.0";
    server.receive(client, *decodeMessage(std::move(message)), channel, Server::Expect::either);
  }
  static Json modern(Json params, Json capabilities = Json::object()) {
    params["_meta"][meta::kProtocolVersion] = kModernVersion;
    params["_meta"][meta::kClientCapabilities] = std::move(capabilities);
    return params;
  }
  void initialize(const char* version, Json capabilities = Json::object()) {
    send({{"id", "init"},
          {"method", "initialize"},
          {"params", {{"protocolVersion", version}, {"capabilities", std::move(capabilities)}}}});
  }

  std::unique_ptr<Features> features = makeFixture();
  std::shared_ptr<Client> client = std::make_shared<Client>();
  std::shared_ptr<Recorder> channel = std::make_shared<Recorder>();
  Server server{*features};
};

/// One tool, whose calls are answered with the task "t".
class TaskFeatures final : public Features {
 public:
  [[nodiscard]] Json serverInfo() const override { return Json::object(); }
  [[nodiscard]] Json capabilities(ProtocolRevision revision) const override {
    if (revision == ProtocolRevision::legacy) return {{"tasks", Json::object()}};
    return {{"extensions", {{kTasksExtension, Json::object()}}}};
  }
  [[nodiscard]] Json tools() override { return Json::array(); }
  [[nodiscard]] Json prompts() override { return Json::array(); }
  [[nodiscard]] Json resources() override { return Json::array(); }
  [[nodiscard]] Json resourceTemplates() override { return Json::array(); }
  Outcome callTool(Call& call) override {
    if (textAt(call.params, "name") == "cancelled while it starts") call.cancel();
    return Task{.id = "t"};
  }
  Outcome getPrompt(Call& /*call*/) override { return Json::object(); }
  Outcome readResource(Call& /*call*/) override { return Json::object(); }
  Outcome complete(Call& /*call*/) override { return Json::object(); }
  std::expected<Task, RpcError> readTask(const Call& /*call*/, const std::string& id) override {
    const std::lock_guard lock(mutex_);
    Task task{.id = id, .status = status_};
    if (status_ == Task::Status::input_required) task.requests["key"] = {"elicitation/create", Json::object()};
    if (status_ == Task::Status::completed) task.result = {{"content", answer_}};
    return task;
  }
  std::optional<RpcError> updateTask(const Call& /*call*/, const std::string& /*id*/, const Json& answers) override {
    const std::lock_guard lock(mutex_);
    answer_ = answers.at("key").value("action", "");
    status_ = Task::Status::completed;
    return std::nullopt;
  }
  std::optional<RpcError> cancelTask(const Call& /*call*/, const std::string& id) override {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(id);
    changed_.notify_all();
    return std::nullopt;
  }

  void become(Task::Status status) {
    const std::lock_guard lock(mutex_);
    status_ = status;
  }
  /// The ids of cancelled tasks, once there is one.
  std::vector<std::string> cancelled() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [this] { return !cancelled_.empty(); });
    return cancelled_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Task::Status status_ = Task::Status::working;
  std::string answer_;
  std::vector<std::string> cancelled_;
};

class McpServerTasks : public McpServer {
 protected:
  McpServerTasks() : tasks_server(tasks) {}
  void TearDown() override {
    client->cancelAll();
    McpServer::TearDown();
  }
  void receive(Json message) {
    message["jsonrpc"] = "2.0";
    tasks_server.receive(client, *decodeMessage(std::move(message)), channel, Server::Expect::either);
  }
  void initializeLegacy(Json capabilities = Json::object()) {
    receive({{"id", "init"},
             {"method", "initialize"},
             {"params", {{"protocolVersion", "2025-11-25"}, {"capabilities", std::move(capabilities)}}}});
  }

  TaskFeatures tasks;
  Server tasks_server;
};

TEST_F(McpServerTasks, TaskOfACallThatWasCancelledWhileItStartedIsCancelled) {
  const Json declared{{"extensions", {{kTasksExtension, Json::object()}}}};
  receive({{"id", 1}, {"method", "tools/call"}, {"params", modern({{"name", "cancelled while it starts"}}, declared)}});
  EXPECT_EQ(tasks.cancelled(), std::vector<std::string>{"t"});
  EXPECT_EQ(channel->count(), 0U);
}

TEST_F(McpServerTasks, LegacyClientCannotCancelATaskThatEnded) {
  initializeLegacy();
  receive({{"id", 1}, {"method", "tasks/cancel"}, {"params", {{"taskId", "t"}}}});
  EXPECT_EQ(channel->answer(1)["result"].value("taskId", ""), "t");
  for (const auto status : {Task::Status::completed, Task::Status::failed, Task::Status::cancelled}) {
    tasks.become(status);
    channel = std::make_shared<Recorder>();
    receive({{"id", 2}, {"method", "tasks/cancel"}, {"params", {{"taskId", "t"}}}});
    EXPECT_EQ(channel->answer(2)["error"]["code"], code::kInvalidParams);
  }
  EXPECT_EQ(tasks.cancelled().size(), 1U);
}

TEST_F(McpServerTasks, LegacyClientIsAskedForTheInputOfATask) {
  initializeLegacy({{"elicitation", Json::object()}});
  tasks.become(Task::Status::input_required);
  receive({{"id", 1}, {"method", "tasks/result"}, {"params", {{"taskId", "t"}}}});
  const Json elicitation =
      channel->await([](const Json& message) { return message.value("method", "") == "elicitation/create"; });
  ASSERT_TRUE(elicitation.contains("id")) << elicitation;
  EXPECT_EQ(elicitation["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], "t");
  receive({{"id", elicitation["id"]}, {"result", {{"action", "decline"}}}});
  EXPECT_EQ(channel->answer(1)["result"]["content"], "decline");
}

TEST_F(McpServer, ServesBothRevisionsOnOneConnection) {
  CONFORMS("R-SESSION-19");
  initialize("2025-06-18");
  EXPECT_EQ(channel->answer("init")["result"]["protocolVersion"], "2025-06-18");
  send({{"id", 1}, {"method", "tools/list"}});
  EXPECT_FALSE(channel->answer(1)["result"].contains("resultType"));
  send({{"id", 2}, {"method", "tools/list"}, {"params", modern({})}});
  EXPECT_EQ(channel->answer(2)["result"]["resultType"], "complete");
}

TEST_F(McpServer, UnknownVersionGetsTheNewestVersionWithInitialize) {
  for (const char* version : {"2026-07-28", "1999-01-01", "2099-01-01"}) {
    channel = std::make_shared<Recorder>();
    initialize(version);
    EXPECT_EQ(channel->answer("init")["result"]["protocolVersion"], "2025-11-25") << version;
  }
  send({{"id", 1}, {"method", "tools/list"}, {"params", {{"_meta", {{meta::kProtocolVersion, "2027-01-01"}}}}}});
  EXPECT_EQ(channel->answer(1)["error"]["code"], code::kUnsupportedVersion);
}

TEST_F(McpServer, NothingIsServedBeforeTheVersionIsKnown) {
  send({{"id", 1}, {"method", "tools/list"}});
  EXPECT_EQ(channel->answer(1)["error"]["code"], code::kInvalidParams);
  send({{"id", 2}, {"method", "tools/call"}, {"params", {{"name", "test_simple_text"}}}});
  EXPECT_EQ(channel->answer(2)["error"]["code"], code::kInvalidParams);
  send({{"id", 3}, {"method", "ping"}});
  EXPECT_EQ(channel->answer(3)["result"], Json::object());
}

TEST_F(McpServer, ACancelledCallIsNeverAnswered) {
  send({{"id", 1}, {"method", "tools/call"}, {"params", modern({{"name", "test_tool_with_logging"}})}});
  send({{"method", "notifications/cancelled"}, {"params", {{"requestId", 1}}}});
  send({{"id", 2}, {"method", "tools/call"}, {"params", modern({{"name", "test_tool_with_logging"}})}});
  EXPECT_TRUE(channel->answer(2).contains("result"));
  EXPECT_EQ(channel->count(), 1U);
}

TEST_F(McpServer, AnIdInUseIsRefusedAndFreeAgainAfterTheAnswer) {
  const Json call{{"id", "x"}, {"method", "tools/call"}, {"params", modern({{"name", "test_tool_with_logging"}})}};
  send(call);
  send(call);
  EXPECT_EQ(channel->answer("x")["error"]["code"], code::kInvalidRequest);
  channel->await([](const Json& message) { return message.contains("result"); });
  channel = std::make_shared<Recorder>();
  send(call);
  EXPECT_TRUE(channel->answer("x").contains("result"));
  send({{"id", 1}, {"method", "tools/list"}, {"params", modern({})}});
  send({{"id", "1"}, {"method", "tools/list"}, {"params", modern({})}});
  EXPECT_TRUE(channel->answer("1").contains("result"));
}

TEST_F(McpServer, TooManyCallsAreRefusedNotQueued) {
  for (std::size_t i = 0; i < Client::kMaxCalls + 50; ++i)
    send({{"id", i}, {"method", "subscriptions/listen"}, {"params", modern({{"notifications", Json::object()}})}});
  EXPECT_TRUE(channel->answer(Client::kMaxCalls + 49).contains("error"));
}

TEST_F(McpServer, ServerSendsElicitationsBeforeTheStatelessVersion) {
  initialize("2025-11-25", {{"elicitation", Json::object()}});
  send({{"id", 7}, {"method", "tools/call"}, {"params", {{"name", "test_input_required_result_multi_round"}}}});
  for (const auto& [field, value] : {std::pair{"name", "Ada"}, std::pair{"color", "green"}}) {
    const Json elicitation = channel->await([&](const Json& message) {
      return message.value("method", "") == "elicitation/create" &&
             message["params"]["requestedSchema"]["properties"].contains(field);
    });
    ASSERT_TRUE(elicitation.contains("id")) << field;
    send({{"id", elicitation["id"]}, {"result", {{"action", "accept"}, {"content", {{field, value}}}}}});
  }
  EXPECT_EQ(channel->answer(7)["result"]["content"][0]["text"], "Your colour is green.");
}

TEST_F(McpServer, UnsupportedElicitationIsNotSent) {
  initialize("2025-11-25");
  send({{"id", 7}, {"method", "tools/call"}, {"params", {{"name", "test_elicitation"}}}});
  EXPECT_TRUE(channel->answer(7).contains("error"));
  send({{"id", 8}, {"method", "tools/call"}, {"params", modern({{"name", "test_missing_capability"}})}});
  EXPECT_EQ(channel->answer(8)["error"]["code"], code::kMissingCapability);
}

TEST_F(McpServer, SubscribersGetOnlyTheNotificationsTheyRequested) {
  send({{"id", "l"},
        {"method", "subscriptions/listen"},
        {"params", modern({{"notifications", {{"promptsListChanged", true}, {"unknown", true}}}})}});
  server.changed(Announcer::Change::tools);
  server.changed(Announcer::Change::prompts);
  EXPECT_EQ(channel->count(), 2U);
  const Json acknowledged =
      channel->await([](const Json& m) { return m.value("method", "") == "notifications/subscriptions/acknowledged"; });
  EXPECT_EQ(acknowledged["params"]["notifications"], Json({{"promptsListChanged", true}}));
  const Json changed =
      channel->await([](const Json& m) { return m.value("method", "") == "notifications/prompts/list_changed"; });
  EXPECT_EQ(changed["params"]["_meta"][meta::kSubscriptionId], "l");
  send({{"method", "notifications/cancelled"}, {"params", {{"requestId", "l"}}}});
  server.changed(Announcer::Change::prompts);
  EXPECT_EQ(channel->count(), 2U);
}

TEST_F(McpServer, MalformedInputOfARoundIsRefused) {
  const auto call = [](Json params) {
    params["name"] = "test_input_required_result_elicitation";
    return modern(std::move(params), {{"elicitation", Json::object()}});
  };
  int id = 0;
  for (const Json& inputs : {Json(), Json("x"), Json::array(), Json{{"user_name", 5}}}) {
    send({{"id", ++id}, {"method", "tools/call"}, {"params", call({{"inputResponses", inputs}})}});
    EXPECT_EQ(channel->answer(id)["error"]["code"], code::kInvalidParams) << inputs;
  }
  send({{"id", ++id}, {"method", "tools/call"}, {"params", call({{"requestState", "made.up"}})}});
  EXPECT_EQ(channel->answer(id)["error"]["code"], code::kInvalidParams);
}

TEST_F(McpServer, ClientThatInitializesTwiceGetsEachNotificationOnce) {
  client->setStream(channel);
  initialize("2025-06-18");
  initialize("2025-06-18");
  const std::size_t before = channel->count();
  server.changed(Announcer::Change::resources);
  EXPECT_EQ(channel->count(), before + 1);
}

/// Tools whose calls wait until all are let through.
class WaitingFeatures final : public EmptyFeatures {
 public:
  Outcome callTool(Call& call) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return open_ || call.cancelled(); });
    return Json::object();
  }
  void release() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST_F(McpServer, CallsThatWaitTakeABoundedAmountOfMemory) {
  constexpr int kCalls = 40;
  WaitingFeatures waiting;
  Server busy(waiting);
  const auto call = [&](int id, const Json& argument) {
    Json message{{"jsonrpc", "2.0"}, {"id", id}, {"method", "tools/call"}};
    message["params"] = modern({{"name", "wait"}, {"arguments", {{"text", argument}}}});
    busy.receive(client, *decodeMessage(std::move(message)), channel, Server::Expect::either);
  };
  const auto large = [&](int first, const Json& argument) {
    for (int id = first; id < first + kCalls; ++id) call(id, argument);
    return channel->answer(first + kCalls - 1);
  };
  const auto isBusy = [](const Json& answer) { return answer.dump().find("too many requests") != std::string::npos; };
  const Json refused = large(0, std::string(std::size_t{4} << 20U, 'a'));
  EXPECT_TRUE(isBusy(refused)) << refused;
  EXPECT_GE(channel->count(), 20U) << "refused of 40 with 4 MiB each";
  EXPECT_LE(channel->count(), 30U);
  waiting.release();
  for (int id = 0; id < kCalls; ++id) EXPECT_FALSE(channel->answer(id).is_null()) << id;
  // Calls are destroyed some time after their answers.
  Json after;
  for (int id = 1000; id < 1500; ++id) {
    call(id, std::string(std::size_t{4} << 20U, 'a'));
    after = channel->answer(id);
    if (!isBusy(after)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(after.contains("result")) << after;
}

/// The channel of a peer that reads nothing until it is told to.
class UnreadChannel final : public Channel {
 public:
  void send(const Json& message) override {
    std::unique_lock lock(mutex_);
    ++(message.contains("result") ? results : errors);
    arrived_.notify_all();
    read_.wait_for(lock, std::chrono::seconds(60), [&] { return reads_; });
  }
  /// Waits until so many messages were sent.
  bool has(int messages) {
    std::unique_lock lock(mutex_);
    return arrived_.wait_for(lock, std::chrono::seconds(60), [&] { return results + errors >= messages; });
  }
  void read() {
    const std::lock_guard lock(mutex_);
    reads_ = true;
    read_.notify_all();
  }

  int results = 0, errors = 0;

 private:
  std::mutex mutex_;
  std::condition_variable arrived_, read_;
  bool reads_ = false;
};

TEST_F(McpServer, AnswersThatNoClientReadsTakeABoundedAmountOfMemory) {
  constexpr int kCalls = 40;
  LargeFeatures large(std::size_t{4} << 20U);
  Server answering(large);
  const auto unread = std::make_shared<UnreadChannel>();
  const auto call = [&](int id, const std::shared_ptr<Channel>& to, const std::string& method) {
    Json message{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", modern({{"name", "large"}})}};
    answering.receive(client, *decodeMessage(std::move(message)), to, Server::Expect::either);
  };
  for (int id = 0; id < kCalls; ++id) call(id, unread, "tools/call");
  ASSERT_TRUE(unread->has(kCalls));
  // Each is in memory as a value and as text.
  EXPECT_GE(unread->results, 12);
  EXPECT_LE(unread->results, 16);
  EXPECT_EQ(unread->results + unread->errors, kCalls);
  call(100, channel, "tools/call");
  EXPECT_NE(channel->answer(100).dump().find("its result is lost"), std::string::npos);
  call(101, channel, "tools/list");
  EXPECT_TRUE(channel->answer(101).contains("result")) << "small answers are not refused";
  unread->read();
  Json after;
  for (int id = 1000; id < 1500; ++id) {
    call(id, channel, "tools/call");
    after = channel->answer(id);
    if (after.contains("result")) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(after.contains("result"));
}

}  // namespace
}  // namespace caisson::mcp
