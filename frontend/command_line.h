// The command line, for Heddle's own tool and for any program that builds a graph.
#pragma once

namespace heddle {

class Graph;

/// Runs `argv` as Heddle's command line: `show`, `run`, `compare`, `bench` and the rest. Returns
/// the exit code: 0; 1 for files, models and data; 2 for the command line itself; 70 for a bug of
/// ours; 130 on Ctrl-C.
int cli(int argc, char **argv);

/// The same for a program with a model of its own: `return heddle::cli(argc, argv, graph);`. The
/// verbs that take a MODEL take `graph` instead; its errors are reported by those that use it.
int cli(int argc, char **argv, const Graph &graph);

} // namespace heddle
