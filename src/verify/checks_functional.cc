// FUNCTIONAL and EDGE_CASES: ordinary programs work, and unusual input and output pass unchanged.
#include "verify/suite.h"

namespace caisson::verify {
namespace {

/// A tool that is on the host works inside.
Verdict toolWorks(Context& context, const std::string& tool, std::string_view arguments = "--version") {
  if (!hostHas(tool)) return skipped(tool + " is not installed on this host");
  const Observed seen = context.script(tool + " " + std::string(arguments));
  return seen.ran && seen.status == 0 && !seen.out.empty() ? passed() : failed(seen.describe());
}

constexpr Check kFunctional[] = {
    {"functional.output", Category::functional, "A command runs and its output comes back",
     [](Context& context) { return printed(context.run({.command = {"echo", "hello"}}), "hello\n"); }},
    {"functional.exit-code", Category::functional, "Exit codes come through",
     [](Context& context) {
       const Observed seen = context.script("exit 42");
       return seen.ran && seen.status == 42 ? passed() : failed(seen.describe());
     }},
    {"functional.stderr", Category::functional, "Standard error is captured apart",
     [](Context& context) {
       const Observed seen = context.script("echo out; echo err >&2");
       return seen.ran && seen.out == "out\n" && seen.err == "err\n" ? passed() : failed(seen.describe());
     }},
    {"functional.stdin", Category::functional, "Standard input arrives",
     [](Context& context) { return printed(context.run({.command = {"cat"}, .input = "a line\n"}), "a line\n"); }},
    {"functional.python", Category::functional, "Python runs",
     [](Context& context) {
       if (!hostHas("python3")) return skipped("python3 is not installed on this host");
       return printed(context.run({.command = {"python3", "-c", "print(6 * 7)"}}), "42\n");
     }},
    {"functional.git", Category::functional, "git works", [](Context& context) { return toolWorks(context, "git"); }},
    {"functional.curl", Category::functional, "curl starts",
     [](Context& context) { return toolWorks(context, "curl"); }},
    {"functional.jq", Category::functional, "jq works", [](Context& context) { return toolWorks(context, "jq"); }},
    {"functional.editors", Category::functional, "vim, less and tree start",
     [](Context& context) {
       std::string missing;
       for (const char* tool : {"vim", "less", "tree"}) {
         const Verdict verdict = toolWorks(context, tool);
         if (verdict.state == CheckState::failed) return verdict;
         if (verdict.state == CheckState::skipped) missing += std::string(missing.empty() ? "" : ", ") + tool;
       }
       return missing.empty() ? passed() : skipped("not installed on this host: " + missing);
     }},
    {"functional.temporary-files", Category::functional, "/tmp can be written and read",
     [](Context& context) { return printed(context.script("echo x > /tmp/f && cat /tmp/f"), "x\n"); }},
    {"functional.workspace", Category::functional, "The workspace can be read and written",
     [](Context& context) {
       return printed(
           context.run({.command = {"sh", "-c", "cat file; echo new > other && cat other"}, .workspace = true}),
           context.secret() + "\nnew\n");
     }},
};

constexpr Check kEdgeCases[] = {
    {"edge.special-characters", Category::edge_cases,
     "Quotes, dollars, blanks, line ends and letters of any script come through",
     [](Context& context) {
       const std::string odd = "'\"$HOME `id` \\ * ; & | > \n\t \xC3\xA9 \xE4\xB8\xAD";
       return printed(context.run({.command = {"printf", "%s", odd}}), odd);
     }},
    {"edge.binary-output", Category::edge_cases, "Output of any bytes comes back as it is",
     [](Context& context) {
       return printed(context.script("printf 'a\\000b\\377c\\033[2J'"), std::string_view("a\0b\xff"
                                                                                         "c\033[2J",
                                                                                         9));
     }},
    {"edge.no-output", Category::edge_cases, "A program that prints nothing is not a failure",
     [](Context& context) { return printed(context.run({.command = {"true"}}), ""); }},
    {"edge.flood", Category::edge_cases, "A flood of output is cut at the limit and counted",
     [](Context& context) {
       const Observed seen = context.script("head -c 4194304 /dev/zero", {{"resources.output", "64K"}});
       return seen.ran && seen.result.out.truncated && seen.out.size() <= 65536 && seen.result.out.dropped > 4'000'000
                  ? passed()
                  : failed(seen.describe());
     }},
    {"edge.long-argument", Category::edge_cases, "An argument of 100,000 letters arrives",
     [](Context& context) {
       return printed(context.run({.command = {"sh", "-c", "echo ${#1}", "sh", std::string(100'000, 'x')}}),
                      "100000\n");
     }},
    {"edge.background", Category::edge_cases, "What a program leaves running ends with it",
     [](Context& context) {
       const Observed seen = context.script("(setsid sleep 8 >/dev/null 2>&1 &) ; echo started");
       if (seen.result.usage.wall_ms > 5000) return failed("it was waited for");
       return printed(seen, "started\n");
     }},
    {"edge.signal", Category::edge_cases, "A program that is killed is reported so",
     [](Context& context) {
       const Observed seen = context.script("kill -9 $$");
       return seen.ran && seen.result.outcome == OutcomeKind::signaled && seen.status == 137 ? passed()
                                                                                             : failed(seen.describe());
     }},
    {"edge.not-found", Category::edge_cases, "A program that does not exist gives status 127",
     [](Context& context) {
       const Observed seen = context.run({.command = {"no-such-program-here"}});
       return seen.status == 127 ? passed() : failed(seen.describe());
     }},
};

}  // namespace

std::span<const Check> functionalChecks() { return kFunctional; }
std::span<const Check> edgeCaseChecks() { return kEdgeCases; }

}  // namespace caisson::verify
