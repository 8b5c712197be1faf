#include "supervise/syscalls/observer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/path_parts.h"
#include "base/syscall_names.h"
#include "egress/dns_message.h"
#include "egress/host_name.h"
#include "host/path_probe.h"
#include "plan/proc_files.h"
#include "plan/syscalls.h"
#include "sys/process_view.h"

namespace caisson::supervise {
namespace {

constexpr std::size_t kMaxFiles = 4096;
constexpr std::size_t kMaxHosts = 64;
constexpr std::size_t kMaxResolvers = 64;
constexpr std::uint16_t kNameService = 53;

bool isBelow(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

/// Paths of the kernel or the sandbox itself, where no host file could be shown.
bool isOwn(std::string_view path) { return isBelow(path, "/proc") || isBelow(path, "/sys") || isBelow(path, "/dev"); }

FileOperation operationOf(plan::FileOperation kind, std::uint64_t flags) {
  switch (kind) {
    case plan::FileOperation::look: return FileOperation::look;
    case plan::FileOperation::write: return FileOperation::write;
    case plan::FileOperation::create: return FileOperation::create;
    case plan::FileOperation::execute: return FileOperation::execute;
    case plan::FileOperation::open: break;
  }
  if ((flags & O_PATH) != 0) return FileOperation::look;
  if ((flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) != 0) return FileOperation::create;
  return (flags & O_ACCMODE) == O_RDONLY && (flags & O_TRUNC) == 0 ? FileOperation::read : FileOperation::write;
}

bool changes(FileOperation operation) {
  return operation == FileOperation::write || operation == FileOperation::create;
}

/// Whether the plan hides this path: by a mask, or in an overlay.
bool isHidden(const plan::Plan& plan, std::string_view path) {
  if (plan.own_root && plan::isMaskedProc(path)) return true;
  return std::ranges::any_of(plan.steps, [&](const plan::Step& step) {
    if (const auto* mask = std::get_if<plan::MaskPath>(&step)) return isBelow(path, mask->target);
    const auto* overlay = std::get_if<plan::MountOverlay>(&step);
    if (overlay == nullptr) return false;
    return std::ranges::any_of(overlay->whiteouts,
                               [&](const std::string& name) { return isBelow(path, overlay->target + "/" + name); });
  });
}

}  // namespace

std::string plainPath(const std::string& directory, const std::string& path) {
  if (path.empty()) return {};
  if (path.front() != '/' && directory.empty()) return {};
  const std::string whole = path.front() == '/' ? path : directory + "/" + path;
  std::string plain;
  for (std::size_t begin = 0; begin < whole.size();) {
    const std::size_t end = std::min(whole.find('/', begin), whole.size());
    const std::string_view part(whole.data() + begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      plain.resize(std::min(plain.rfind('/'), plain.size()));
      continue;
    }
    plain.append("/").append(part);
  }
  const auto control = [](char letter) { return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F; };
  if (std::ranges::any_of(plain, control)) return {};
  return plain.empty() ? "/" : plain;
}

Observer::Observer(const plan::Plan& plan) : plan_(plan) {
  for (const plan::ObservedCall& call : plan::observedFileCalls()) {
    if (const auto number = syscallNumber(call.name)) files_calls_[*number] = &call;
  }
  for (const std::string_view call : plan::observedNetworkCalls()) {
    if (const auto number = syscallNumber(call)) network_calls_[*number] = call;
  }
}

void Observer::note(const Attempt& attempt, const Listener& listener) {
  if (const auto call = files_calls_.find(attempt.number); call != files_calls_.end()) {
    noteFiles(attempt, listener, *call->second);
  } else if (const auto other = network_calls_.find(attempt.number); other != network_calls_.end()) {
    noteNetwork(attempt, listener, other->second);
  }
}

void Observer::noteFiles(const Attempt& attempt, const Listener& listener, const plan::ObservedCall& call) {
  const std::uint64_t flags = call.flags >= 0 ? attempt.arguments[call.flags] : 0;
  noteFile(attempt, listener, call.first, operationOf(call.operation, flags));
  if (call.second.path >= 0) noteFile(attempt, listener, call.second, FileOperation::create);
}

void Observer::noteFile(const Attempt& attempt, const Listener& listener, plan::PathArgument where,
                        FileOperation operation) {
  const auto text = sys::readText(attempt.pid, attempt.arguments[where.path]);
  if (!text || text->empty()) return;
  std::string directory;
  if (text->front() != '/') {
    const int descriptor = where.directory < 0 ? AT_FDCWD : static_cast<int>(attempt.arguments[where.directory]);
    directory = sys::directoryOf(attempt.pid, descriptor);
  }
  if (!root_) root_ = sys::rootOf(attempt.pid);
  if (!listener.isValid(attempt)) {
    root_.reset();  // it may belong to another process now
    return;
  }
  std::string path = plainPath(directory, *text);
  if (path.empty() || isOwn(path)) return;
  const auto key = std::make_pair(path, operation);
  if (const auto known = files_.find(key); known != files_.end()) {
    ++known->second.count;
    return;
  }
  if (files_.size() >= kMaxFiles) {
    ++dropped_;
    return;
  }
  FileRequest request{.path = std::move(path), .operation = operation, .state = FileState::present, .count = 1};
  request.state = stateOf(request.path, operation);
  files_.emplace(key, std::move(request));
}

FileState Observer::stateOf(const std::string& path, FileOperation operation) const {
  if (isHidden(plan_, path)) return FileState::hidden;
  if (!root_) return FileState::present;
  sys::Glance seen = sys::glance(root_.get(), path);
  if (!changes(operation)) {
    if (seen.error != 0) return FileState::absent;
    return operation == FileOperation::execute && seen.noexec ? FileState::noexec : FileState::present;
  }
  // A new file is created in the nearest existing directory.
  const bool there = seen.error == 0;
  std::string place = path;
  while (seen.error != 0 && place != "/") {
    place = parentOf(place);
    seen = sys::glance(root_.get(), place);
  }
  if (seen.read_only) return FileState::read_only;
  return there || (operation == FileOperation::create && place == parentOf(path)) ? FileState::present
                                                                                  : FileState::absent;
}

void Observer::noteNetwork(const Attempt& attempt, const Listener& listener, std::string_view call) {
  const std::uint64_t* words = attempt.arguments;
  if (call == "connect") return noteAddress(attempt, listener, words[1], words[2]);
  if (call == "sendto") {
    if (words[4] != 0) noteAddress(attempt, listener, words[4], words[5]);
    return noteQuestion(attempt, listener, words[1], words[2]);
  }
  // The first messages of a list, the first buffer of each: a resolver sends whole queries.
  const std::size_t count = call == "sendmmsg" ? std::min<std::uint64_t>(words[2], 4) : 1;
  for (std::size_t at = 0; at < count; ++at) {
    mmsghdr one{};
    iovec piece{};
    const std::uint64_t address = words[1] + at * sizeof(mmsghdr);
    const std::size_t size = call == "sendmmsg" ? sizeof(one) : sizeof(one.msg_hdr);
    if (!sys::readMemory(attempt.pid, address, {reinterpret_cast<char*>(&one), size})) return;
    if (one.msg_hdr.msg_name != nullptr) {
      noteAddress(attempt, listener, reinterpret_cast<std::uint64_t>(one.msg_hdr.msg_name), one.msg_hdr.msg_namelen);
    }
    if (one.msg_hdr.msg_iovlen == 0) continue;
    if (!sys::readMemory(attempt.pid, reinterpret_cast<std::uint64_t>(one.msg_hdr.msg_iov),
                         {reinterpret_cast<char*>(&piece), sizeof(piece)})) {
      return;
    }
    noteQuestion(attempt, listener, reinterpret_cast<std::uint64_t>(piece.iov_base), piece.iov_len);
  }
}

void Observer::noteAddress(const Attempt& attempt, const Listener& listener, std::uint64_t address,
                           std::uint64_t length) {
  sockaddr_storage room{};
  const std::size_t size = std::min<std::uint64_t>(length, sizeof(room));
  if (size < sizeof(sa_family_t) || !sys::readMemory(attempt.pid, address, {reinterpret_cast<char*>(&room), size}) ||
      !listener.isValid(attempt)) {
    return;
  }
  char text[INET6_ADDRSTRLEN] = {};
  std::uint16_t port = 0;
  bool own = false;
  if (room.ss_family == AF_INET && size >= sizeof(sockaddr_in)) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(&room);
    ::inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
    port = ntohs(four->sin_port);
    own = (ntohl(four->sin_addr.s_addr) >> 24) == 127 || four->sin_addr.s_addr == 0;
  } else if (room.ss_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(&room);
    ::inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
    port = ntohs(six->sin6_port);
    own = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
  } else {
    return;
  }
  if (port == kNameService) {  // the DNS query that follows names the host
    if (resolvers_.size() < kMaxResolvers) {
      resolvers_.emplace(attempt.pid, static_cast<int>(attempt.arguments[0]));
    }
    return;
  }
  // A resolver connects without a port to find out which source address the kernel would use.
  if (!own && port != 0) addHost(text, port);
}

void Observer::noteQuestion(const Attempt& attempt, const Listener& listener, std::uint64_t address,
                            std::uint64_t length) {
  std::uint8_t room[512];
  if (length == 0 || length > sizeof(room)) return;
  if (!resolvers_.contains({attempt.pid, static_cast<int>(attempt.arguments[0])})) return;
  if (!sys::readMemory(attempt.pid, address, {reinterpret_cast<char*>(room), length}) || !listener.isValid(attempt)) {
    return;
  }
  const auto question = egress::dns::parseQuery({room, length});
  if (!question) return;
  const auto host = egress::canonicalHost(question->name);
  if (host && !host->address && !egress::isLocalName(host->name)) addHost(host->name, 0);
}

void Observer::addHost(const std::string& host, std::uint16_t port) {
  const std::string key = host + " " + std::to_string(port);
  if (const auto known = hosts_.find(key); known != hosts_.end()) {
    ++known->second.count;
  } else if (hosts_.size() < kMaxHosts) {
    hosts_.emplace(key, HostRequest{.host = host, .port = port, .count = 1});
  } else {
    ++dropped_;
  }
}

void Observer::report(RunResult& result) {
  const std::vector<std::string> automounts = sys::automountPoints();
  std::vector<FileRequest*> wanted;
  for (auto& [key, request] : files_) {
    // The payload chose the names: probing them must not make this host connect to another.
    const bool far = std::ranges::any_of(automounts, [&](const std::string& at) { return isBelow(request.path, at); });
    if (request.state != FileState::present && !far) wanted.push_back(&request);
  }
  if (const auto unanswered = host::probePaths(wanted); !unanswered.empty()) {
    result.notices.push_back("the file system of " + unanswered.front() +
                             " does not answer: " + std::to_string(unanswered.size()) + " paths were not looked at");
  }
  for (auto& [key, request] : files_) result.files.push_back(std::move(request));
  for (auto& [key, request] : hosts_) result.hosts.push_back(std::move(request));
  if (dropped_ > 0) {
    result.notices.push_back("the program asked for more than was written down: " + std::to_string(dropped_) +
                             " requests are missing");
  }
  files_.clear();
  hosts_.clear();
}

}  // namespace caisson::supervise
