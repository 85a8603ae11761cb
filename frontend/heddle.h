// Heddle's public API. Describe a model with heddle::Graph, compile it to a heddle::Model, run it
// in a heddle::Session.
#pragma once

#include "frontend/command_line.h"
#include "frontend/generate.h"
#include "frontend/graph.h"
#include "frontend/load.h"
#include "frontend/model.h"
#include "frontend/operations.h"
#include "frontend/oracle.h"
#include "frontend/sampler.h"
#include "frontend/session.h"
#include "frontend/weights.h"
