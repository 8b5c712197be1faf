#include "session/store/metadata.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "approval/owner.h"
#include "base/json_writer.h"
#include "base/path_text.h"
#include "base/text.h"
#include "base/version.h"
#include "policy/decode/decode.h"
#include "policy/describe/json.h"
#include "policy/document/document.h"
#include "sys/process_start.h"

namespace caisson::session {
namespace {

using policy::Node;

static_assert(kMaxMetadataBytes <= policy::kMaxDocumentBytes);
constexpr const char* kMetaFile = "meta.json";
constexpr const char* kInitFile = "init.json";
constexpr const char* kActivityFile = "activity";
constexpr std::string_view kOtherVersionHint =
    "commit or export the session with the caisson that wrote it; caisson session destroy ID removes it";

std::int64_t clockNs(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void add(JsonWriter& json, const char* key, const Moment& moment) {
  json.key(key).beginObject().key("wall_ns").number(moment.wall_ns).key("boot_ns").number(moment.boot_ns);
  json.key("boot").string(moment.boot).end();
}

void add(JsonWriter& json, const char* key, const ProcessId& id) {
  json.key(key).beginObject().key("pid").number(id.pid).key("start").number(id.start);
  json.key("boot").string(id.boot).end();
}

/// Time left until `end`, negative after it. Until a reboot the monotonic clock counts, which cannot be set; after one
/// only the wall clock is left.
std::int64_t leftNs(const Moment& end, const Moment& now) {
  return now.boot == end.boot && !now.boot.empty() ? end.boot_ns - now.boot_ns : end.wall_ns - now.wall_ns;
}

Moment later(Moment moment, double seconds) {
  const auto ns = static_cast<std::int64_t>(seconds * 1e9);
  moment.wall_ns += ns;
  moment.boot_ns += ns;
  return moment;
}

Error damagedMetadata(const std::string& where, const char* key) {
  return plainError(Stage::state, "read", where, std::string("\"") + key + "\" is missing or of a wrong type",
                    "the session's metadata is damaged; `caisson session destroy` removes it");
}

/// Reads members of a table; the first missing or mistyped one becomes the error.
class Reader {
 public:
  Reader(const Node& table, std::string where) : table_(table), where_(std::move(where)) {}

  const Node* member(const char* key, Node::Type type) {
    const Node* node = table_.find(key);
    if (node != nullptr && node->type == type) return node;
    if (!error_) error_ = damagedMetadata(where_, key);
    return nullptr;
  }
  std::string text(const char* key) {
    const Node* node = member(key, Node::Type::text);
    return node != nullptr ? node->text : "";
  }
  /// As JsonWriter::bytes() writes it.
  std::string path(const char* key) {
    const Node* encoding = table_.find(std::string(key) + "_encoding");
    auto decoded = decodePath(text(key), encoding != nullptr ? encoding->text : "");
    if (!decoded && !error_) error_ = damagedMetadata(where_, key);
    return decoded.value_or("");
  }
  std::int64_t integer(const char* key) {
    const Node* node = member(key, Node::Type::integer);
    return node != nullptr ? node->integer : 0;
  }
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> result;
    if (const Node* node = member(key, Node::Type::list)) {
      for (const Node& item : node->items) result.push_back(item.text);
    }
    return result;
  }
  /// Missing in files of an older caisson: false.
  [[nodiscard]] bool flag(const char* key) const {
    const Node* node = table_.find(key);
    return node != nullptr && node->type == Node::Type::boolean && node->boolean;
  }
  /// Missing in files of an older caisson: empty.
  sys::FileIdentity identity(const char* key) {
    if (table_.find(key) == nullptr) return {};
    auto identity = sys::FileIdentity::read(text(key));
    if (!identity && !error_) error_ = damagedMetadata(where_, key);
    return identity.value_or(sys::FileIdentity());
  }
  Moment moment(const char* key) {
    const Node* node = member(key, Node::Type::table);
    if (node == nullptr) return {};
    Reader inner(*node, where_);
    Moment result{inner.integer("wall_ns"), inner.integer("boot_ns"), inner.text("boot")};
    if (!error_) error_ = inner.error_;
    return result;
  }
  ProcessId process(const char* key) {
    const Node* node = member(key, Node::Type::table);
    if (node == nullptr) return {};
    Reader inner(*node, where_);
    ProcessId id{static_cast<pid_t>(inner.integer("pid")), static_cast<std::uint64_t>(inner.integer("start")),
                 inner.text("boot")};
    if (!error_) error_ = inner.error_;
    return id;
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  void fold(const Reader& other) {
    if (!error_) error_ = other.error_;
  }

 private:
  const Node& table_;
  std::string where_;
  std::optional<Error> error_;
};

/// Members of a policy that are not settings; files of an older caisson lack them.
void readChoices(const Node& root, Reader& reader, policy::Policy& policy) {
  policy.use = root.find("use") != nullptr ? reader.text("use") : kSessionUse;
  if (root.find("typed") != nullptr) policy.typed = reader.texts("typed");
  if (root.find("around") != nullptr) policy.filesystem.workspace.around = reader.path("around");
}

/// Whether all of `text` is a number, which goes to `value`.
bool readInteger(std::string_view text, std::int64_t& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

Result<void> checkLength(const sys::RootDir& session, const std::string& text, std::size_t limit) {
  if (text.size() <= limit) return {};
  return fail(plainError(Stage::limits, "write", metadataName(session),
                         "the session's policy, environment and checkpoints would have " + std::to_string(text.size()) +
                             " bytes in its metadata, and the limit is " + std::to_string(limit),
                         limit == kMaxNewMetadataBytes ? "shorten the environment or the lists of the policy"
                                                       : "commit what is worth keeping and begin a new session"));
}

}  // namespace

Moment Moment::beforeThisTick() {
  Moment moment = now();
  moment.wall_ns = clockNs(CLOCK_REALTIME_COARSE) - 1;
  return moment;
}

void waitForTickAfter(const Moment& moment) {
  // Not by the wall clock, which may be set.
  const std::int64_t passed = clockNs(CLOCK_BOOTTIME) - moment.boot_ns;
  const std::int64_t then = clockNs(CLOCK_MONOTONIC) - passed;
  const timespec pause{0, 500'000};
  while (clockNs(CLOCK_MONOTONIC_COARSE) <= then) ::nanosleep(&pause, nullptr);
}

Moment Moment::now() {
  Moment moment{.wall_ns = 0, .boot_ns = 0, .boot = sys::bootId()};
  // A pause between the two readings would look like a clock that was set.
  constexpr std::int64_t kMaxPauseNs = 1'000'000;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t before = clockNs(CLOCK_BOOTTIME);
    moment.wall_ns = clockNs(CLOCK_REALTIME);
    moment.boot_ns = clockNs(CLOCK_BOOTTIME);
    if (moment.boot_ns - before <= kMaxPauseNs) break;
  }
  return moment;
}

bool Metadata::isFirstDirectory() const {
  return first_identity.empty() || sys::isSameFile(first_identity, workspace_identity);
}

std::vector<std::string> Metadata::mountedLayers() const {
  std::vector<std::string> layers = frozen;
  layers.push_back(upper);
  layers.insert(layers.end(), root_frozen.begin(), root_frozen.end());
  layers.push_back(root_upper);
  return layers;
}

double Metadata::secondsLeft(const Moment& now) const {
  const std::int64_t left = leftNs(expires, now);
  return left <= 0 ? 0 : static_cast<double>(left) / 1e9;
}

double Metadata::secondsSinceEnd(const Moment& now) const {
  const std::int64_t left = leftNs(expires, now);
  return left >= 0 ? 0 : static_cast<double>(-left) / 1e9;
}

void Metadata::setTtl(const Moment& now, double seconds) {
  ttl_seconds = seconds;
  expires = later(now, seconds);
}

bool extendByActivity(const sys::RootDir& session, Metadata& metadata) {
  constexpr double kLeastGain = 60, kLeastPart = 0.05;
  const Moment now = Moment::now();
  const double left = metadata.secondsLeft(now);
  if (left <= 0) return false;
  if (metadata.ttl_seconds - left < std::min(kLeastGain, metadata.ttl_seconds * kLeastPart)) return false;
  const std::string text = std::to_string(now.wall_ns) + " " + std::to_string(now.boot_ns) + " " +
                           (now.boot.empty() ? "-" : now.boot) + "\n";
  if (!session.replaceFile(kActivityFile, text, 0600)) return false;
  metadata.expires = later(now, metadata.ttl_seconds);
  return true;
}

std::string toJson(const Metadata& metadata) {
  JsonWriter json;
  json.beginObject().key("format").number(kFormat).key("caisson").string(ownVersion()).key("id").string(metadata.id);
  json.key("name").string(metadata.name).key("workspace").string(metadata.workspace);
  if (!metadata.workspace_identity.empty()) {
    json.key("workspace_identity").string(metadata.workspace_identity.text());
  }
  if (!metadata.first_identity.empty()) json.key("first_identity").string(metadata.first_identity.text());
  add(json, "began", metadata.began);
  add(json, "expires", metadata.expires);
  json.key("ttl_ms").number(static_cast<std::int64_t>(metadata.ttl_seconds * 1000));
  json.key("family").string(metadata.family).key("frozen").strings(metadata.frozen);
  json.key("upper").string(metadata.upper).key("root_frozen").strings(metadata.root_frozen);
  json.key("root_upper").string(metadata.root_upper).key("checkpoints").beginArray();
  for (const Checkpoint& one : metadata.checkpoints) {
    json.beginObject().key("name").string(one.name).key("created").number(one.created);
    json.key("frozen").strings(one.frozen);
    if (one.root) json.key("root").strings(*one.root);
    json.end();
  }
  json.end().key("auto_checkpoint").boolean(metadata.auto_checkpoint).key("pooled").boolean(metadata.pooled);
  json.key("payload_id").number(metadata.payload_id).key("granted").strings(metadata.granted);
  if (metadata.creator) add(json, "creator", *metadata.creator);
  if (metadata.pooled_by) add(json, "pooled_by", *metadata.pooled_by);
  if (!metadata.policy.typed.empty()) json.key("typed").strings(metadata.policy.typed);
  if (const std::string& around = metadata.policy.filesystem.workspace.around; !around.empty()) {
    json.bytes("around", around);
  }
  json.key("use").string(metadata.policy.use).key("policy").raw(policy::toJson(metadata.policy)).end();
  return json.text() + "\n";
}

namespace {

std::vector<Checkpoint> readCheckpoints(Reader& reader, const std::string& where) {
  std::vector<Checkpoint> found;
  const Node* const checkpoints = reader.member("checkpoints", Node::Type::list);
  if (checkpoints == nullptr) return found;
  for (const Node& item : checkpoints->items) {
    Reader one(item, where);
    found.push_back({one.text("name"), one.integer("created"), one.texts("frozen"), std::nullopt});
    if (item.find("root") != nullptr) found.back().root = one.texts("root");
    reader.fold(one);
  }
  return found;
}

}  // namespace

Result<Metadata> metadataFromJson(std::string_view text, const std::string& where) {
  auto document = policy::readText(text, policy::Format::json, where);
  if (!document) return fail(document.error());
  Reader reader(document->root, where);
  Metadata metadata;
  const Node* writer = document->root.find("caisson");
  const std::string written_by = writer != nullptr ? writer->text : "";
  const FormatVersion format{
      .found = reader.integer("format"), .oldest = kFormat, .newest = kFormat, .written_by = written_by};
  if (!reader.error() && !format.isKnown()) return fail(unknownFormat(where, format, kOtherVersionHint));
  metadata.id = reader.text("id");
  metadata.name = reader.text("name");
  metadata.workspace = reader.text("workspace");
  metadata.workspace_identity = reader.identity("workspace_identity");
  metadata.first_identity = reader.identity("first_identity");
  metadata.began = reader.moment("began");
  metadata.expires = reader.moment("expires");
  metadata.ttl_seconds = document->root.find("ttl_ms") != nullptr  // missing in older files
                             ? static_cast<double>(reader.integer("ttl_ms")) / 1000
                             : static_cast<double>(metadata.expires.wall_ns - metadata.began.wall_ns) / 1e9;
  metadata.family = reader.text("family");
  metadata.frozen = reader.texts("frozen");
  metadata.upper = reader.text("upper");
  if (document->root.find("root_upper") != nullptr) {  // missing in older files
    metadata.root_frozen = reader.texts("root_frozen");
    metadata.root_upper = reader.text("root_upper");
  } else {
    metadata.root_upper = metadata.upper;
  }
  metadata.auto_checkpoint = reader.flag("auto_checkpoint");
  metadata.pooled = reader.flag("pooled");
  if (document->root.find("granted") != nullptr) metadata.granted = reader.texts("granted");  // missing in older files
  if (document->root.find("creator") != nullptr) metadata.creator = reader.process("creator");
  if (document->root.find("pooled_by") != nullptr) metadata.pooled_by = reader.process("pooled_by");
  metadata.payload_id = static_cast<uid_t>(reader.integer("payload_id"));
  metadata.checkpoints = readCheckpoints(reader, where);
  const Node* stored = reader.member("policy", Node::Type::table);
  if (reader.error()) return fail(*reader.error());
  // Checked against the owner's ceilings when it was created; those may have changed since.
  const policy::Ceilings none = approval::noCeilings();
  const policy::Origin origin{.ceilings = &none};
  auto decoded = policy::decode({where, *stored}, origin);
  if (!decoded && !written_by.empty() && written_by != ownVersion()) {
    return fail(otherVersionError(
        "read", where,
        "its policy was written by caisson " + written_by + ", and this caisson (" + std::string(ownVersion()) +
            ") does not understand it: " + decoded.error().object + ": " + decoded.error().reason,
        kOtherVersionHint));
  }
  if (!decoded) return fail(decoded.error());
  metadata.policy = std::move(*decoded);
  readChoices(document->root, reader, metadata.policy);
  return metadata;
}

Result<std::string> readMetadataText(const sys::RootDir& session) {
  return session.readFile(kMetaFile, kMaxMetadataBytes);
}

void addActivity(const sys::RootDir& session, Metadata& metadata) {
  const auto text = session.readFile(kActivityFile, 256);
  if (!text) return;
  Moment last;
  const std::vector<std::string_view> parts = split(trimmed(*text, " \n"), ' ');
  if (parts.size() != 3 || !readInteger(parts[0], last.wall_ns) || !readInteger(parts[1], last.boot_ns)) return;
  last.boot = parts[2];
  const Moment end = later(last, metadata.ttl_seconds);
  const Moment now = Moment::now();
  if (leftNs(end, now) > leftNs(metadata.expires, now)) metadata.expires = end;
}

std::string metadataName(const sys::RootDir& session) { return session.knownAs() + "/" + kMetaFile; }

Result<Metadata> readMetadata(const sys::RootDir& session) {
  auto text = readMetadataText(session);
  if (!text) return fail(text.error());
  auto metadata = metadataFromJson(*text, metadataName(session));
  if (metadata) addActivity(session, *metadata);
  return metadata;
}

Result<void> writeMetadata(const sys::RootDir& session, const Metadata& metadata, std::size_t limit) {
  const std::string text = toJson(metadata);
  if (auto checked = checkLength(session, text, limit); !checked) return checked;
  return session.writeFileAtomic(kMetaFile, text, 0600);
}

Result<void> replaceMetadata(const sys::RootDir& session, const Metadata& metadata, std::size_t limit) {
  const std::string text = toJson(metadata);
  if (auto checked = checkLength(session, text, limit); !checked) return checked;
  return session.replaceFile(kMetaFile, text, 0600);
}

Result<sys::Fd> exchangeMetadata(const sys::RootDir& session, const Metadata& metadata) {
  const std::string text = toJson(metadata);
  if (auto checked = checkLength(session, text, kMaxMetadataBytes); !checked) return fail(checked.error());
  return session.exchangeFile(kMetaFile, text, 0600);
}

Result<void> syncMetadata(const sys::RootDir& session) { return session.makeDurable(kMetaFile); }

ProcessId ProcessId::of(pid_t pid) { return {pid, sys::processStart(pid), sys::bootId()}; }

bool ProcessId::isAlive() const { return pid > 0 && sys::stillRuns(pid, start) && boot == sys::bootId(); }

Result<InitRecord> readInitRecord(const sys::RootDir& session) {
  auto text = session.readFile(kInitFile, kMaxMetadataBytes);
  if (!text) return fail(text.error());
  const std::string where = session.knownAs() + "/" + kInitFile;
  auto document = policy::readText(*text, policy::Format::json, where);
  if (!document) return fail(document.error());
  Reader reader(document->root, where);
  InitRecord record;
  record.init = reader.process("init");
  record.supervisor = reader.process("supervisor");
  record.layers = reader.texts("layers");
  if (reader.error()) return fail(*reader.error());
  return record;
}

Result<void> writeInitRecord(const sys::RootDir& session, const InitRecord& record) {
  JsonWriter json;
  json.beginObject();
  add(json, "init", record.init);
  add(json, "supervisor", record.supervisor);
  json.key("layers").strings(record.layers).end();
  const std::string text = json.text() + "\n";
  return session.replaceFile(kInitFile, text, 0600);
}

}  // namespace caisson::session
