#include "plan/named_paths.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "plan/plan_testing.h"
#include "support/conforms.h"

namespace caisson::plan {
namespace {

using namespace testing;  // NOLINT: the vocabulary of these tests
using policy::Level;
using policy::Policy;
using policy::WorkspaceMode;

TEST(OwnState, IsHiddenWhereverItIsShown) {
  HostFacts host = someHost();
  host.own_state = "/home/someone/project/.state/caisson";
  for (const bool secrets : {false, true}) {
    Policy policy = withWorkspace(WorkspaceMode::overlay);
    policy.filesystem.workspace.show_secrets = secrets;
    const Plan overlay = planned(policy, host);
    EXPECT_TRUE(anyContains(stepAt<MountOverlay>(overlay, "/workspace")->whiteouts, ".state/caisson"));
    policy.filesystem.workspace.mode = WorkspaceMode::rw;
    EXPECT_NE(positionOf<MaskPath>(planned(policy, host), "/workspace/.state/caisson"), -1);
  }
  host.read_only = {directory("/home/someone")};
  EXPECT_NE(positionOf<MaskPath>(planned(withWorkspace(WorkspaceMode::none), host), host.own_state), -1);
  host.read_only.clear();
  host.own_state = "/srv/state";
  EXPECT_NE(positionOf<MountTmpfs>(planned(withWorkspace(WorkspaceMode::none, Level::process), host), "/srv/state"),
            -1);
}

TEST(OwnState, CannotBeShownItself) {
  for (const std::string part :
       {"", "/audit", "/approvals", "/quarantine/deeper", "/tools", "/mcp", "/what-comes-later"}) {
    HostFacts host = hostWithWorkspace("/srv/state" + part);
    host.own_state = "/srv/state";
    EXPECT_TRUE(refusal(withWorkspace(WorkspaceMode::ro), host).find("own state") != std::string::npos) << part;
    host = someHost();
    host.own_state = "/srv/state";
    host.read_write = {directory("/srv/state" + part)};
    EXPECT_TRUE(refusal(withWorkspace(WorkspaceMode::none), host).find("own state") != std::string::npos) << part;
  }
  HostFacts host = someHost();
  host.own_state = "/home/someone/project/state";
  Policy policy = withWorkspace(WorkspaceMode::ro);
  policy.isolation.tier = policy::Tier::landlock;
  EXPECT_TRUE(refusal(policy, host).find("own state") != std::string::npos) << "nothing can be hidden there";
}

TEST(OwnState, OfSessionsIsShownOnlyAsTheirWorkspace) {
  for (const std::string& part :
       std::vector<std::string>{"/srv/state/sessions", "/srv/state/sessions/cs-1", "/srv/state/sessions/cs-1/journal",
                                "/srv/state/sessions/cs-1/empty", "/srv/state/sessions/cs-1/tier/upper"}) {
    for (const bool writable : {false, true}) {
      HostFacts host = someHost();
      host.own_state = "/srv/state";
      (writable ? host.read_write : host.read_only) = {directory(part)};
      EXPECT_NE(refusal(withWorkspace(WorkspaceMode::none), host).find("own state"), std::string::npos) << part;
    }
    HostFacts host = hostWithWorkspace(part);
    host.own_state = "/srv/state";
    const bool made = part.ends_with("/empty") || part.ends_with("/tier/upper");
    EXPECT_EQ(build(withWorkspace(WorkspaceMode::ro), host, {{"true"}, false}).has_value(), made) << part;
  }
}

TEST(OwnState, MountedElsewhereIsHiddenAndCannotBeShown) {
  HostFacts host = someHost();
  host.own_mounts = {"/home/someone/project/bm", "/srv/copy", "/usr/share/copy"};
  const Plan overlay = planned(withWorkspace(WorkspaceMode::overlay), host);
  ASSERT_NE(stepAt<MountOverlay>(overlay, "/workspace"), nullptr);
  EXPECT_TRUE(anyContains(stepAt<MountOverlay>(overlay, "/workspace")->whiteouts, "bm"));
  EXPECT_NE(positionOf<MaskPath>(planned(withWorkspace(WorkspaceMode::rw), host), "/workspace/bm"), -1);
  for (const Level level : {Level::full, Level::process})
    EXPECT_NE(positionOf<MaskPath>(planned(withWorkspace(WorkspaceMode::none, level), host), "/usr/share/copy"), -1);
  for (const std::string place : {"/srv/copy", "/srv/copy/sessions"}) {
    for (const bool writable : {false, true}) {
      HostFacts named = host;
      std::vector<HostPath>& paths = writable ? named.read_write : named.read_only;
      paths = {directory(place)};
      EXPECT_NE(refusal(withWorkspace(WorkspaceMode::none), named).find("mounted at /srv/copy"), std::string::npos)
          << place << writable;
    }
    HostFacts shown = hostWithWorkspace(place);
    shown.own_mounts = {"/srv/copy"};
    EXPECT_NE(refusal(withWorkspace(WorkspaceMode::ro), shown).find("mounted at /srv/copy"), std::string::npos);
  }
  host.read_write = {directory("/srv")};
  EXPECT_NE(positionOf<MaskPath>(planned(withWorkspace(WorkspaceMode::none), host), "/srv/copy"), -1);
  Policy landlock = withWorkspace(WorkspaceMode::none);
  landlock.isolation.tier = policy::Tier::landlock;
  EXPECT_NE(refusal(landlock, host).find("mounted at /srv/copy"), std::string::npos) << "nothing can be hidden there";
}

TEST(OwnState, InItsDefaultPlaceIsHiddenBesideAnother) {
  HostFacts host = someHost();
  host.own_state = "/srv/state";
  host.own_default_state = "/home/someone/.local/share/caisson";
  host.read_write = {directory("/home/someone/.local")};
  EXPECT_NE(positionOf<MaskPath>(planned(withWorkspace(WorkspaceMode::none), host), host.own_default_state), -1);
  for (const std::string part : {"", "/audit", "/sessions/cs-1/empty"}) {
    host.read_write = {directory(host.own_default_state + part)};
    EXPECT_NE(refusal(withWorkspace(WorkspaceMode::none), host).find("own state"), std::string::npos) << part;
  }
  // A session's workspace is shown also where CAISSON_HOME lies in the default place.
  host = hostWithWorkspace("/home/someone/.local/share/caisson/ci/sessions/cs-1/empty");
  host.own_default_state = "/home/someone/.local/share/caisson";
  host.own_state = host.own_default_state + "/ci";
  EXPECT_TRUE(build(withWorkspace(WorkspaceMode::ro), host, {{"true"}, false}).has_value());
}

TEST(NamedPaths, AreShownAtTheirOwnNameAndGuardedAgainstLinks) {
  HostFacts host = someHost();
  host.read_only = {directory("/opt/tools"), file("/opt/file")};
  host.read_write = {directory("/srv/data")};
  const Plan plan = planned(profile(), host);
  for (const char* path : {"/opt/tools", "/opt/file", "/srv/data"}) {
    ASSERT_NE(stepAt<Bind>(plan, path), nullptr) << path;
    EXPECT_TRUE(stepAt<Bind>(plan, path)->canonical) << path;
    EXPECT_EQ(stepAt<Bind>(plan, path)->writable, std::string_view(path) == "/srv/data") << path;
  }
  EXPECT_TRUE(anyContains(plan.warnings, "/srv/data is writable directly"));
}

TEST(NamedPaths, GivenByALinkHaveTheLinksNameToo) {
  HostFacts host = someHost();
  host.read_only = {{.requested = "/home/someone/tools/", .path = "/opt/tools", .directory = true}};
  const Plan plan = planned(profile(), host);
  ASSERT_NE(stepAt<Bind>(plan, "/opt/tools"), nullptr);
  const auto* link = stepAt<MakeSymlink>(plan, "/home/someone/tools");
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->to, "/opt/tools");
  EXPECT_TRUE(link->optional) << "a link in its parents must not be followed to the host";
  EXPECT_EQ(positionOf<MakeSymlink>(plan, "/home/someone/tools") + 2, static_cast<int>(plan.steps.size()))
      << "a later step could follow it";
}

TEST(NamedPaths, GivenByALinkStayDeniedUnderBothNames) {
  HostFacts host = someHost();
  host.read_only = {{.requested = "/home/someone/tools", .path = "/opt/tools", .directory = true}};
  Policy policy = profile();
  policy.filesystem.denied = {"/home/someone/tools/secret"};
  host.denied_real = {{"/home/someone/tools/secret", "/opt/tools/secret"}};
  EXPECT_NE(stepAt<MaskPath>(planned(policy, host), "/opt/tools/secret"), nullptr);
  policy.filesystem.workspace.mode = policy::WorkspaceMode::none;  // it would lie in a denied directory
  for (const char* denied : {"/home/someone/tools", "/home/someone"}) {
    policy.filesystem.denied = {denied};
    EXPECT_EQ(stepAt<MakeSymlink>(planned(policy, host), "/home/someone/tools"), nullptr) << denied;
    EXPECT_NE(stepAt<MaskPath>(planned(policy, host), "/opt/tools"), nullptr) << denied;
  }
}

TEST(NamedPaths, ThatCannotBeShownAreRefusedAtEveryLevel) {
  const HostPath bad[] = {{.requested = "/missing", .path = "", .sys_errno = ENOENT},
                          {.requested = "/run/docker.sock", .path = "/run/docker.sock"},
                          {.requested = "/", .path = "/", .directory = true}};
  for (const HostPath& path : bad) {
    for (const bool writable : {false, true}) {
      for (const Level level : {Level::full, Level::process}) {
        HostFacts host = someHost();
        (writable ? host.read_write : host.read_only) = {path};
        const auto plan = build(withWorkspace(WorkspaceMode::ro, level), host, {{"true"}, false});
        EXPECT_FALSE(plan) << path.requested << (writable ? " writable" : " read-only") << " at level "
                           << (level == Level::full ? "full" : "process");
      }
    }
  }
}

TEST(SystemDirectory, IsShownAnywayIfNamingItAddsNoRights) {
  HostFacts host = someHost();
  host.uid = 1000;
  const Policy policy = withWorkspace(WorkspaceMode::none);
  EXPECT_TRUE(isShownAnyway(policy, host, "/usr"));
  EXPECT_TRUE(isShownAnyway(policy, host, "/usr/share/doc"));
  for (const char* path : {"/", "/etc", "/usrlocal", "/opt", "/home/someone"}) {
    EXPECT_FALSE(isShownAnyway(policy, host, path)) << path;
  }
  host.uid = 0;
  EXPECT_FALSE(isShownAnyway(policy, host, "/usr")) << "root's named paths are shown as the sandbox user's";
  host.uid = 1000;
  Policy image = policy;
  image.filesystem.root = "/srv/image";
  EXPECT_FALSE(isShownAnyway(image, host, "/usr"));
  Policy listed = policy;
  listed.process.allowed_executables = {"sh"};
  EXPECT_FALSE(isShownAnyway(listed, host, "/usr"));
}

}  // namespace
}  // namespace caisson::plan
