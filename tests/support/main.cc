#include "support/test_program.h"

int main(int argc, char** argv) { return caisson::test::runTestProgram(argc, argv); }
