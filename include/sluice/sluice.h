/* Everything a training binary needs. */
#ifndef SLUICE_H
#define SLUICE_H
#include <sluice/checkpoint.h>
#include <sluice/config.h>
#include <sluice/dtype.h>
#include <sluice/init.h>
#include <sluice/model.h>
#include <sluice/optimizer.h>
#include <sluice/plan.h>
#include <sluice/runtime.h>
#include <sluice/status.h>
#include <sluice/trace.h>
#include <sluice/version.h>
#include <sluice/world.h>
#endif
