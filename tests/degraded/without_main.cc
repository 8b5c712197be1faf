#include "degraded/without.h"

int main(int argc, char** argv) { return caisson::test::runWithout(argc, argv); }
