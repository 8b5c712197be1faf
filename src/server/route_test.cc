#include "server/route.h"

#include <gtest/gtest.h>

#include <set>

#include "server/preview.h"

namespace caisson::server {
namespace {

TEST(Routes, EveryRouteIsCompleteAndUnique) {
  std::set<std::string> seen;
  for (const Route* route : allRoutes()) {
    EXPECT_TRUE(seen.insert(std::string(route->operation)).second) << route->operation;
    EXPECT_NE(route->perform, nullptr) << route->operation;
    EXPECT_FALSE(route->summary.empty()) << route->operation;
    if (route->method == "GET") continue;
    EXPECT_NE(route->access, Access::open) << route->operation;
    EXPECT_TRUE(route->access != Access::read || route->operation == "checkPolicy") << route->operation;
  }
}

TEST(Routes, MatchByMethodAndSegments) {
  const auto match = matchRoute("GET", {"v1", "sandboxes", "cs-1", "commands", "c2"});
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.route->operation, "getCommand");
  EXPECT_EQ(match.path, (std::vector<std::string>{"cs-1", "c2"}));
  EXPECT_EQ(matchRoute("PATCH", {"v1", "sandboxes"}).allowed, "POST, GET");
  EXPECT_EQ(matchRoute("GET", {"v2"}).route, nullptr);
}

TEST(Routes, UnknownFieldsAndWrongTypesAreFlaws) {
  const Route& create = *matchRoute("POST", {"v1", "sandboxes"}).route;
  EXPECT_EQ(findBodyFlaw(create, {{"name", "x"}, {"cpus", 0.5}}), "");
  for (const Json& body :
       {Json{{"nme", "x"}}, Json{{"name", 1}}, Json{{"cpus", "1"}}, Json{{"cpus", -1}}, Json{{"labels", {{"a", 1}}}},
        Json{{"allowed_hosts", "x"}}, Json::array(), Json{{"name", std::string("a\0b", 3)}}})
    EXPECT_NE(findBodyFlaw(create, body), "") << writeJson(body);
  const Route& list = *matchRoute("GET", {"v1", "sandboxes"}).route;
  EXPECT_EQ(findQueryFlaw(list, *http::parseTarget("/v1/sandboxes?limit=10")), "");
  for (const char* target : {"/v1/sandboxes?x=1", "/v1/sandboxes?limit=0", "/v1/sandboxes?limit=a",
                             "/v1/sandboxes?limit=1.5", "/v1/sandboxes?limit=1&limit=2"})
    EXPECT_NE(findQueryFlaw(list, *http::parseTarget(target)), "") << target;
}

TEST(Routes, DocumentHasEveryRoute) {
  const auto document = parseJson(openApi());
  ASSERT_TRUE(document);
  std::size_t operations = 0;
  for (const auto& path : (*document)["paths"]) operations += path.size();
  EXPECT_EQ(operations, allRoutes().size());
}

TEST(Preview, NameHasPortAndSandbox) {
  const auto name = parsePreviewName("8000-cs-abcdef.localhost", false);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->port, 8000);
  EXPECT_EQ(name->sandbox, "cs-abcdef");
  for (const char* host : {"localhost", "127.0.0.1", "8000.localhost", "x-cs-abc.localhost", "8000-cs-abc.example.org",
                           "99999-cs-a.localhost", "0-cs-abc.localhost", "8000-cs-abc.localhost.evil"})
    EXPECT_FALSE(parsePreviewName(host, false)) << host;
  EXPECT_TRUE(parsePreviewName("8000-cs-abc.previews.example.org", true));
}

TEST(Preview, CookiesAndCredentialsStayHere) {
  const http::RequestHead head{
      .method = "GET",
      .target = *http::parseTarget("/x?y"),
      .headers = {{"host", "a"}, {"cookie", "secret=1"}, {"authorization", "Bearer t"}, {"accept", "*/*"}}};
  const auto body = makePreview(head, 1234);
  EXPECT_EQ(body.request_headers, (http::Headers{{"host", "a"}, {"accept", "*/*"}}));
  EXPECT_EQ(body.target, "/x?y");
}

}  // namespace
}  // namespace caisson::server
