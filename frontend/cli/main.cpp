// Heddle's tool: the command line and nothing else.
#include "frontend/command_line.h"

int main(int argc, char **argv) { return heddle::cli(argc, argv); }
