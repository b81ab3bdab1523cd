/* The shim's tests and their NCCL agree on these. */
#pragma once

#include "plugins/nccl/nccl_abi.h"

#ifndef ECHO_VERSION
#define ECHO_VERSION 22809
#endif
enum { ECHO_OTHER_VERSION = 22810, ECHO_REFUSED = 666 };

long echo_calls(void);
