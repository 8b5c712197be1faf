// What every GoogleTest program of the project does in main().
#pragma once

namespace caisson::test {

/// Runs the tests that the arguments select. Aborts tests that hang. The user's registry of directories that sandboxes
/// write (XDG_DATA_HOME) is a new one: in a shared one, a test would print the notices about runs that another suite
/// killed.
int runTestProgram(int argc, char** argv);

}  // namespace caisson::test
